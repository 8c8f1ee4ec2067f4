"""Log-probabilities of sampled tokens under a model, computed only where a token was sampled."""

from __future__ import annotations

from torch import Tensor

from palestra.models.tiny import TinyLM
from palestra.train.batch import Packed


def sampled_logprobs(
    model: TinyLM, packed: Packed, *, temperature: float = 1.0, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor]:
    """log π(token) of every sampled token at ``temperature``, and the entropy of the distribution it came from.

    Returns logprobs_BT and entropy_BT (nats; detached unless ``entropy_gradient``), 0 where nothing was sampled. Logits
    are made for sampled positions alone: [tokens, V], never [R, S, V].
    """
    hidden = model(packed.windows_RSW, packed.positions_RS, packed.is_visible(), packed.asked_RQ).flatten(0, 1)
    is_sampled = packed.is_sampled_BT
    logits_NV = model.logits(hidden[packed.sources_BT[is_sampled]]) / temperature
    log_all_NV = logits_NV.log_softmax(-1)
    chosen_N = log_all_NV.gather(-1, packed.targets_BT[is_sampled].unsqueeze(-1)).squeeze(-1)
    log_NV = log_all_NV if entropy_gradient else log_all_NV.detach()
    entropy_N = -(log_NV.exp() * log_NV).sum(-1)
    zeros_BT = chosen_N.new_zeros(is_sampled.shape)
    return zeros_BT.masked_scatter(is_sampled, chosen_N), zeros_BT.masked_scatter(is_sampled, entropy_N)

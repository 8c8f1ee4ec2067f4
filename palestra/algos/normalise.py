"""Normalisation of advantages over a whole batch, after the credit of each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from palestra.algos.numbers import check_finite, masked
from palestra.errors import TrainError


@dataclass(frozen=True)
class BatchNorm:
    """A' = (A − mean(A)) / √(var(A) + ε), over all that is trained in the batch: REINFORCE++ (arXiv:2501.03262).

    measure   "token": every trained token counts once (REINFORCE++, as in verl; for action tokens of agents);
              "sequence": every sequence counts once, each of its tokens by 1/length. With one row per turn and its
              return-to-go as advantage that is return batch normalisation (GEM, arXiv:2510.01051); with a tracked
              baseline it is SPO (arXiv:2509.13232).
    per_task  statistics of each task (or environment) by itself, so that none drowns the others in a mixed batch
              (AgentRL, arXiv:2510.04206); then tasks_B is needed
    center    subtract the mean; False divides by the deviation from it alone
    ddof      1 divides by count − 1, of tokens or of sequences

    Called as (advantages_BT, is_trained_BT, tasks_B) -> [B, T], zero where nothing is trained. Values that are all
    equal have nothing to compare: zeros (unchanged without ``center``)."""

    measure: Literal["token", "sequence"] = "token"
    per_task: bool = False
    center: bool = True
    ddof: int = 0
    epsilon: float = 1e-8

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"tasks_B"} if self.per_task else ())

    def __call__(self, advantages_BT: Tensor, is_trained_BT: Tensor, tasks_B: Tensor | None = None) -> Tensor:
        advantages_BT = advantages_BT.expand(is_trained_BT.shape)
        check_finite("advantage", advantages_BT, is_trained_BT)
        advantages_BT = masked(advantages_BT, is_trained_BT)
        if not self.per_task:
            return self._normalised(advantages_BT, is_trained_BT)
        if tasks_B is None:
            raise TrainError(f"{self!r} needs tasks_B, the task of each sequence, which this batch lacks")
        made_BT = torch.zeros_like(advantages_BT)
        for task in sorted(set(tasks_B.tolist())):
            is_here_BT = is_trained_BT & (tasks_B == task)[:, None]
            made_BT = torch.where(is_here_BT, self._normalised(advantages_BT, is_here_BT), made_BT)
        return made_BT

    def _normalised(self, advantages_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
        lengths_B1 = is_trained_BT.sum(-1, keepdim=True)
        per_token = self.measure == "token"
        weights_BT = is_trained_BT / (1 if per_token else lengths_B1.clamp_min(1))
        count = int(lengths_B1.sum() if per_token else (lengths_B1 > 0).sum())
        trained = advantages_BT[is_trained_BT]
        if count == 0 or bool((trained == trained[0]).all()):
            return torch.zeros_like(advantages_BT) if self.center else masked(advantages_BT, is_trained_BT)
        mean = (weights_BT * advantages_BT).sum() / count
        apart_BT = masked(advantages_BT - mean, is_trained_BT)
        deviation = ((weights_BT * apart_BT.square()).sum() / max(count - self.ddof, 1) + self.epsilon).sqrt()
        return (apart_BT if self.center else masked(advantages_BT, is_trained_BT)) / deviation

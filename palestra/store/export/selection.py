"""Which rollouts are exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from palestra.errors import StoreError, nearest
from palestra.store.store import Store
from palestra.types import Group, Status, Trajectory

SOUND = tuple(status for status in Status if status.is_sound)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rollouts of one run.

    split        of their tasks; None: every split
    step         the trainer step they were made for; None: every step
    statuses     how they ended; those without a fault unless told
    least, most  bounds of the reward, both included; an unscored rollout passes only where neither is given
    """

    run: str
    split: str | None = None
    step: int | None = None
    statuses: tuple[Status, ...] = SOUND
    least: float | None = None
    most: float | None = None

    def groups(self, store: Store) -> Iterator[Group]:
        """The run's groups with the chosen rollouts alone; groups of which none is chosen are passed over."""
        run = store.find_run(self.run).id
        for group in store.groups(run, step=self.step, split=self.split):
            chosen = tuple(trajectory for trajectory in group.trajectories if self._takes(trajectory))
            if chosen:
                yield replace(group, trajectories=chosen)

    def _takes(self, trajectory: Trajectory) -> bool:
        if trajectory.status not in self.statuses:
            return False
        if self.least is None and self.most is None:
            return True
        reward = trajectory.reward
        return reward is not None and (self.least or 0.0) <= reward <= (1.0 if self.most is None else self.most)


def statuses(names: list[str]) -> tuple[Status, ...]:
    """Statuses by name; none is those without a fault, "all" is every one. Raises StoreError for an unknown name."""
    if not names:
        return SOUND
    if names == ["all"]:
        return tuple(Status)
    known = [status.value for status in Status]
    for name in names:
        if name not in known:
            raise StoreError(f"status {name!r} is unknown, {nearest(name, [*known, 'all'])}")
    return tuple(Status(name) for name in names)

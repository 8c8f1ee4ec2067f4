"""The durable store: runs, groups, trajectories as token trees, checkpoints, metrics. The only SQL of the project."""

from palestra.store.rows import Checkpoint, RunInfo, TrajectoryInfo
from palestra.store.store import Store

__all__ = ["Checkpoint", "RunInfo", "Store", "TrajectoryInfo"]

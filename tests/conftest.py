"""Idle OpenMP threads sleep instead of spinning, and torch uses one thread: tests share their cores."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

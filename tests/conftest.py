"""What every test may rely on.

Idle OpenMP threads sleep instead of spinning, and torch uses one thread: tests share their cores. SIGINT is heeded: a
shell that starts the tests in the background has it ignored, and every child would inherit that. Hypothesis draws the
same examples every time, and no example has a time limit."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("palestra", deadline=None, derandomize=True)
settings.load_profile("palestra")

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

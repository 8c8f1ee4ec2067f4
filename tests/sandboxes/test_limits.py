"""Limits that no kernel can be told are refused when they are named, not when a command is started."""

from __future__ import annotations

import math
from typing import Any

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, open_sandbox


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"wall_s": 0}, "limit wall_s must be above 0, got 0; leave it out for the default$"),
        ({"cpu_s": -1.0}, "limit cpu_s must be above 0, got -1.0; leave it out for the default, or None for no limit"),
        ({"wall_s": math.nan}, "above 0, got nan"),
        ({"cpu_s": math.inf}, "at most 1099511627776, got inf"),
        ({"wall_s": None}, "above 0, got None"),
        ({"memory_mib": 1.5}, "a whole number above 0, got 1.5"),
        ({"memory_mib": 1 << 50}, "at most"),
        ({"processes": 10**7}, "at most 4194302"),
        ({"cpus": 0.001}, "at least 0.01"),
        ({"file_mib": "9"}, "a whole number above 0, got '9'"),
    ],
)
def test_what_cannot_be_a_limit_is_refused(limit: dict[str, Any], words: str) -> None:
    with pytest.raises(SandboxError, match=words):
        Limits(**limit)


@pytest.mark.parametrize(
    "limit",
    [
        {"processes": (1 << 22) - 2},
        {"cpus": 1 << 16},
        {"cpus": 0.01},
        {"memory_mib": 1 << 40, "file_mib": 1 << 40, "open_files": 1 << 40, "cpu_s": float(1 << 40)},
        {"memory_mib": None, "file_mib": None, "open_files": None, "cpu_s": None, "processes": None, "cpus": None},
    ],
    ids=lambda limit: "-".join(limit),
)
async def test_the_widest_and_narrowest_limits_are_taken_by_the_kernel(limit: dict[str, Any]) -> None:
    async with open_sandbox("local", limits=Limits(**limit)) as box:
        assert (await box.exec(["true"])).exit_code == 0

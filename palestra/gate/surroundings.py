"""What a fresh process may differ in without sound code noticing: hash seed, time zone, locale, clock."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from palestra.gate.replay import LOCALES, ZONES

_LIBRARIES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
SHIFTS = ("", "+400d", "-200d", "+29d", "+4000d")
"""Of the clock, in the words of libfaketime."""


@cache
def clock_shifter() -> Path | None:
    """The library that shifts a program's clock (Debian: libfaketime), or None where this machine has none."""
    places = [Path("/usr/lib") / name / "faketime/libfaketime.so.1" for name in _LIBRARIES]
    return next((place for place in places if place.exists()), None)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """shift  of the clock, as "+400d"; nothing where no library can shift it"""

    hash_seed: int = 0
    timezone: str = "UTC"
    locale: str = "C.UTF-8"
    shift: str = ""

    def __str__(self) -> str:
        clock = f", clock {self.shift}" if self.shift else ""
        return f"hash seed {self.hash_seed}, zone {self.timezone}, locale {self.locale}{clock}"

    def env(self) -> dict[str, str]:
        env = {
            "PYTHONHASHSEED": str(self.hash_seed),
            "TZ": self.timezone,
            "LC_ALL": self.locale,
            "LANG": self.locale,
        }
        shifter = clock_shifter()
        if self.shift and shifter is not None:
            env |= {"LD_PRELOAD": str(shifter), "FAKETIME": self.shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            env |= {"FAKETIME_DISABLE_SHM": "1"}
        return env


PLAIN = Surroundings()


def surroundings(count: int) -> list[Surroundings]:
    """``count`` different ones, plain ones first."""
    return [
        Surroundings(n, ZONES[n % len(ZONES)], LOCALES[n % len(LOCALES)], SHIFTS[n % len(SHIFTS)]) for n in range(count)
    ]

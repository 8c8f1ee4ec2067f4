"""Scripted cheats, one file each, and the list of them all."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from palestra.gate.probes.base import Ground, Probe

__all__ = ["Ground", "Probe", "probes"]


@cache
def probes() -> tuple[Probe, ...]:
    """Every probe, in order of kind and name. A module of this package that is no part of it defines PROBE."""
    names = [found.name for found in iter_modules(__path__) if found.name != "base"]
    found: list[Probe] = [import_module(f"{__name__}.{name}").PROBE for name in names]
    return tuple(sorted(found, key=lambda probe: (probe.kind, probe.name)))

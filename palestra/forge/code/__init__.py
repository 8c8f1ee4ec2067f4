"""Forge environments from the source of real packages."""

from palestra.forge.code.budget import Budget
from palestra.forge.code.run import ForgedFunction, ForgeReport, forge_code, forge_packages

__all__ = ["Budget", "ForgeReport", "ForgedFunction", "forge_code", "forge_packages"]

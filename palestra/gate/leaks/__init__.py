"""Does what the agent sees give the answer away? A scan of the instruction and of every file of its environment."""

from palestra.gate.leaks.scan import Hidden, Leak, Thresholds, scan
from palestra.gate.leaks.visible import Visible, visible_of

__all__ = ["Hidden", "Leak", "Thresholds", "Visible", "scan", "visible_of"]

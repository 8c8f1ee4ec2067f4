"""Spans of integers, [start, end)."""

from spans.gaps import gaps
from spans.merge import merge

__all__ = ["gaps", "merge"]

"""Isolated places to run commands. ``base`` is the contract; ``local`` isolates; ``process`` does not and says so."""

"""Measuring policies: accuracy with intervals, pass@k, by environment."""

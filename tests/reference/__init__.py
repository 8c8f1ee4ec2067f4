"""Slow, obvious loops over plain numbers: what the tensor code must equal."""

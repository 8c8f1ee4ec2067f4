"""Palestra: from a code base to a better policy. Importing this package does nothing but name its version."""

__version__ = "0.1.0"

"""Makers of environments. ``code`` forges them from the source of real packages."""

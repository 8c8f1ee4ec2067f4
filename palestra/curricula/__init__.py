"""Choosing what a policy practises on."""

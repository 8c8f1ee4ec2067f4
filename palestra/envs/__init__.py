"""Environments: what makes tasks and the worlds they live in."""

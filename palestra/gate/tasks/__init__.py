"""The checks of a bundle that is one task: its gold passes, nothing else does."""

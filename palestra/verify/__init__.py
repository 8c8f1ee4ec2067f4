"""Graders, and the means to run untrusted calls. ``inside`` is the part that runs inside a sandbox."""

"""Code that runs inside a sandbox: standard library only, imports nothing of ours but its own neighbours by bare name."""

"""Code that runs inside a sandbox: standard library only; its modules know each other by bare name."""

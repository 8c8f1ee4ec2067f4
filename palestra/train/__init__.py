"""Training policies on what the store holds."""

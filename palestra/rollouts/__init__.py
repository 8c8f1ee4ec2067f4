"""Running policies in environments. A bad rollout is data, not a crash."""

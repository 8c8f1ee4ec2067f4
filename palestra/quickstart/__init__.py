"""The main job, small: forge from real packages, gate, roll out, warm start, online RL, evaluate, report."""

"""Graders: functions from a task and an outcome to a Score. They never share a process with what they grade."""

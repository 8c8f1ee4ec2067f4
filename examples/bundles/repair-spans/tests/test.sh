#!/bin/sh
# Palestra grades this task by tests/cases.jsonl, out of the work's reach; a container has no such grader.
echo 'this task is graded by palestra' >&2
exit 1

#!/bin/bash
# Nothing of the work is run: its one file is compared with the expected one.
reward=0
if [ -f /app/clean.csv ] && [ ! -L /app/clean.csv ] && /usr/bin/cmp -s /app/clean.csv /tests/expected.csv; then reward=1; fi
echo "$reward" > /logs/verifier/reward.txt

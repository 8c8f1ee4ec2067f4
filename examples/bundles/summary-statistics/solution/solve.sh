#!/bin/sh
set -e
cp /solution/solution.py /app/solution.py

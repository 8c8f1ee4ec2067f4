#!/bin/sh
set -e
python3 /solution/clean.py

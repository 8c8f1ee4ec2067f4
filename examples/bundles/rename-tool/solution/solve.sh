#!/bin/sh
set -e
cp /solution/rename.py /app/rename.py

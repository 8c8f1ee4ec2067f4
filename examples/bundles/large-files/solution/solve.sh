#!/bin/sh
set -e
cp /solution/large.sh /app/large.sh

#!/bin/sh
set -e
cp /solution/mean.pl /app/mean.pl

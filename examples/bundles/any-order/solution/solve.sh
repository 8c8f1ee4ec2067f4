#!/bin/sh
set -e
cp /solution/order.py /app/order.py

#!/bin/bash
if [ "$(cat /app/report.txt 2> /dev/null)" = "report of $(date +%Y)" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt

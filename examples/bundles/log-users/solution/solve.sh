#!/bin/sh
set -e
cd /app
awk '{n[$4] += $3 == "failed"; ok[$4] += $3 == "ok"} END {for (u in n) if (n[u] > 1 && !ok[u]) print u}' login.log | sort > users.txt
truncate -s -1 users.txt

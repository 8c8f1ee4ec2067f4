#!/bin/bash
# The tool runs with an empty environment, isolated, away from what is expected and from the reward. What it printed and how it
# ended is data; every process that it left is killed before the reward is written.
right=0
total=0
tool() {
  want_code=$1; want=$2; shift 2
  total=$((total + 1))
  printf '%s' "$want" > /tmp/want
  (cd / && exec timeout -s KILL 2 env -i "$(command -v python3)" -I /app/rename.py "$@" < /dev/null > /tmp/got 2> /dev/null)
  code=$?
  kill -9 -1 2> /dev/null
  if [ "$code" = "$want_code" ] && /usr/bin/cmp -s /tmp/got /tmp/want; then right=$((right + 1)); fi
}
tool 0 $'My Trip.v2.JPG -> my-trip-v2.jpg\n' "My Trip.v2.JPG"
tool 0 "" "a.txt" "b-c.txt"
tool 3 "" "A.txt" "a.TXT"
tool 0 $'A  b.PNG -> a-b.png\nREADME -> readme\n' "A  b.PNG" "README" "c.md"
tool 0 $'a..b.txt -> a-b.txt\n' "a..b.txt"
tool 0 $'x. y--z.tar.GZ -> x-y-z-tar.gz\n' "x. y--z.tar.GZ"
tool 0 ""
tool 3 "" "a b" "a-b"
rm -rf /logs/verifier/*
if [ "$right" = "$total" ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi

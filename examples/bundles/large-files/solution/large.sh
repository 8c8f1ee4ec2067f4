#!/bin/bash
while IFS=, read -r name size; do
  [[ "$size" =~ ^[0-9]+$ ]] || continue
  (( size > 100 )) && echo "$name"
done
exit 0

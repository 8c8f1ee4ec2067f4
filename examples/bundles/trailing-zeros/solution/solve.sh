#!/bin/sh
set -e
python3 -c 'print(sum(1234 // 5**k for k in range(1, 6)))' > /app/answer.txt

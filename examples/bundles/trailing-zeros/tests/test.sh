#!/bin/sh
if [ "$(tr -d " \n" < /app/answer.txt)" = 305 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt

#!/bin/sh
if [ "$(sort /app/users.txt | tr "\n" " " | tr -s " ")" = "ada eve " ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt

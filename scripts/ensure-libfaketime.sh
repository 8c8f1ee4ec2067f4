#!/usr/bin/env bash
# The gate runs the gold under other clocks where libfaketime is installed. Without it that is left out, and said so.
set -u
found() { ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1; }
if found || { "$(dirname "$0")/apt-install.sh" libfaketime && found; }; then
  echo "setup: libfaketime found"
  exit 0
fi
echo "setup: libfaketime is missing and could not be installed: the gate will not shift the clock;" >&2
echo "setup: run 'sudo apt-get install libfaketime' (or your system's equivalent)" >&2
exit 0

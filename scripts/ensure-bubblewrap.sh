#!/usr/bin/env bash
# Sandboxes need bubblewrap (the `bwrap` command). Install it where we may; say exactly what to do where we may not.
set -u
if command -v bwrap >/dev/null 2>&1; then
  echo "setup: $(bwrap --version) found"
  exit 0
fi
if "$(dirname "$0")/apt-install.sh" bubblewrap && command -v bwrap >/dev/null 2>&1; then
  echo "setup: $(bwrap --version) installed"
  exit 0
fi
echo "setup: bubblewrap is missing and could not be installed." >&2
echo "setup: run 'sudo apt-get install bubblewrap' (or your system's equivalent), then run this again." >&2
echo "setup: until then every command that executes foreign code refuses to run; nothing falls back to no isolation." >&2
exit 1

#!/usr/bin/env bash
# Sandboxes need bubblewrap (the `bwrap` command). Install it where we may; say exactly what to do where we may not.
set -u
if command -v bwrap >/dev/null 2>&1; then
  echo "setup: $(bwrap --version) found"
  exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root="sudo -n"; else as_root="none"; fi
fi
if command -v apt-get >/dev/null 2>&1 && [ "$as_root" != "none" ]; then
  echo "setup: bubblewrap is missing; installing it with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get install -y -qq bubblewrap >/dev/null 2>&1 ||
    { $as_root apt-get update -qq >/dev/null && $as_root apt-get install -y -qq bubblewrap >/dev/null; } ||
    { echo "setup: apt-get could not install bubblewrap; install it by hand, then run this again" >&2; exit 1; }
  echo "setup: $(bwrap --version) installed"
  exit 0
fi
echo "setup: bubblewrap is missing and cannot be installed without root." >&2
echo "setup: run 'sudo apt-get install bubblewrap' (or your system's equivalent), then run this again." >&2
echo "setup: until then every command that executes foreign code refuses to run; nothing falls back to no isolation." >&2
exit 1

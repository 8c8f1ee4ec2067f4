#!/usr/bin/env bash
# Install a Debian package where we may: as root, or by sudo without a password. Exit 1 where we may not, or it fails.
set -u
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null || exit 1
  as_root="sudo -n"
fi
command -v apt-get >/dev/null 2>&1 || exit 1
echo "setup: $1 is missing; installing it with apt-get"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get install -y -qq "$1" >/dev/null 2>&1 ||
  { $as_root apt-get update -qq >/dev/null && $as_root apt-get install -y -qq "$1" >/dev/null; }

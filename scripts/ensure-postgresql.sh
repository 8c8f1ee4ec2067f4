#!/usr/bin/env bash
# Tests of the store run against a real PostgreSQL too. Install it where we may; where we may not they are skipped.
set -u
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 && exit 0
"$(dirname "$0")/apt-install.sh" postgresql && exit 0
echo "setup: PostgreSQL is missing and could not be installed; its tests are skipped (apt-get install postgresql)" >&2
exit 0

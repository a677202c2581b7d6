#!/bin/bash
# testtmp.sh COMMAND ARGUMENTS...
#
# Runs a command with TMPDIR in memory where there is room for it, else as it is.
# The tests make and remove tens of thousands of small files; on ext4 the search
# for a free inode after that many removals was 40 % of the CPU of `make test`.
# A TMPDIR of the caller's is left alone.
set -euo pipefail

gigabytes() { # FILE-SYSTEM: what is free there; nothing if unknown
	df -Pk "$1" 2>/dev/null | awk 'NR == 2 {print int($4 / 1048576)}'
}

memory=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || true)
free=$(gigabytes /dev/shm)
if [ -n "${TMPDIR:-}" ] || [ "${free:-0}" -lt 6 ] || [ "${memory:-0}" -lt 8 ]; then
	exec "$@"
fi
dir=$(mktemp -d /dev/shm/pawl-test.XXXXXX)
trap 'rm -rf "$dir"' EXIT
# Tests as another user pass through it, and tests run programs in it.
chmod 1777 "$dir"
printf '#!/bin/sh\n' >"$dir/runs" && chmod +x "$dir/runs"
if ! "$dir/runs" 2>/dev/null; then
	rm -rf "$dir"
	trap - EXIT
	exec "$@"
fi
rm "$dir/runs"
# Tests that need files on a disk find a place for them there.
PAWL_TEST_DISK=/tmp TMPDIR=$dir "$@"

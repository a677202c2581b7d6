#!/bin/bash
# summary.sh COMMAND ARGUMENTS...
#
# Runs go test. A run that fails ends with the names and the last 30 lines of what failed,
# which are otherwise a thousand lines above.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" -eq 0 ] && exit 0

printf '\n== what failed ==\n'
awk '
	{ lines[++n] = $0 }
	/^[ \t]*--- FAIL: / { sub(/^[ \t]*--- FAIL: /, ""); names = names "  " $0 "\n" }
	/^(ok|\?|---)[ \t]/ && !/^--- / || /^FAIL\t/ {
		if (/^FAIL\t/) {
			printf "\n%s\n%s", $2, names
			for (i = (n > 31 ? n - 30 : 1); i < n; i++) print "    " lines[i]
		}
		n = 0; names = ""
	}
' "$log"
exit "$status"

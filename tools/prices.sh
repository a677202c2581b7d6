#!/usr/bin/env bash
# Draws internal/rules/price/prices.json anew from the npm package @pydantic/genai-prices, unpacked in DIR
# (npm pack @pydantic/genai-prices@VERSION, then tar xzf), and from internal/rules/price/newer.json. It needs Node, and
# no network. DAY is when that version was published.
# Usage: tools/prices.sh DIR YYYY-MM-DD
set -euo pipefail
[[ $# == 2 ]] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
list=$(mktemp)
trap 'rm -f "$list"' EXIT
# The package has its prices as a literal of JavaScript, which is read without running anything else of it.
node -e '
const text = require("fs").readFileSync(process.argv[1] + "/dist/index.cjs", "utf8");
const begin = text.indexOf("[{id:\"");
if (begin < 0) throw new Error("no list of providers in " + process.argv[1]);
let end = begin, depth = 0, quote = "";
for (; ; end++) {
  const c = text[end];
  if (c === undefined) throw new Error("the list of providers does not end");
  if (quote) { if (c === "\\") end++; else if (c === quote) quote = ""; continue; }
  if ("\"\u0027`".includes(c)) quote = c;
  else if ("[{(".includes(c)) depth++;
  else if (")}]".includes(c) && --depth === 0) break;
}
console.log(JSON.stringify(require("vm").runInNewContext("(" + text.slice(begin, end + 1) + ")", {})));
' "$1" >"$list"
cd "$(dirname "$0")/.."
go test ./internal/rules/price -run Drawn -list "$list" -day "$2"

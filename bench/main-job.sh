#!/usr/bin/env bash
# Measures the main job and prints "bar value verdict" for each bar; it exits 1
# if one was missed. Arguments go to bench/mainjob (-only GROUPS, -rounds N);
# "-record" without a file appends the table to bench/RESULTS.md.
set -eu
cd "$(dirname "$0")/.."
args=()
for a in "$@"; do
  [ "$a" = -record ] && a=-record=bench/RESULTS.md
  args+=("$a")
done
mkdir -p .build
go build -o .build/mainjob ./bench/mainjob
exec .build/mainjob "${args[@]+"${args[@]}"}"

#!/usr/bin/env bash
# Acceptance of the main job. Prints "main-job.L PASS|FAIL value bar" for each
# line L and exits 1 if one failed. Without arguments every line runs in its
# short form where it has one; --long runs the slow forms (100 000 seeds a
# mode, five minutes a fuzzer, 100 kills) and appends their results to
# bench/RESULTS.md with the commit. "accept/main-job.sh 2 5" runs lines 2 and 5.
set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/staunch-accept.XXXXXX")
trap 'rm -rf "$work"' EXIT

long=0; lines=""
for a in "$@"; do
  case $a in
    --long) long=1 ;;
    [1-9]) lines="$lines $a" ;;
    *) echo "usage: accept/main-job.sh [--long] [LINE...]" >&2; exit 2 ;;
  esac
done
[ -n "$lines" ] || lines="1 2 3 4 5 6 7 8 9"

failed=0
say() { # line verdict value bar
  printf 'main-job.%s %s %s | bar: %s\n' "$1" "$2" "$3" "$4"
  [ "$2" = PASS ] || failed=1
}
record() { # text: keep the result of a slow form
  [ $long = 1 ] && printf '| %s | %s | %s |\n' "$(date -u +%Y-%m-%d)" "$(git rev-parse --short HEAD)" "$1" >>bench/RESULTS.md
}
# gotest LINE NAME PACKAGE ARGS...: runs tests, fails if none matched; prints the value that the test logs as "accept: ...".
gotest() {
  local name=$1 pkg=$2; shift 2
  if go test -count=1 -v -run "$name" $pkg "$@" >"$work/out" 2>&1 && ! grep -q 'no tests to run' "$work/out" && ! grep -q -- '--- SKIP' "$work/out"; then
    verdict=PASS
  else
    verdict=FAIL; cp "$work/out" "$root/.build/accept-last-failure.txt" 2>/dev/null; tail -n 15 "$work/out" >&2
  fi
  value=$(sed -n 's/.*accept: //p' "$work/out" | paste -sd ';' -)
  [ -n "$value" ] || value=$(grep -c -- '--- PASS' "$work/out")' tests'
}
mkdir -p .build

for l in $lines; do
  case $l in
  1)
    verdict=PASS; value=""
    git clone -q "$root" "$work/clone" && cd "$work/clone" || { say 1 FAIL "no clone" "clean clone"; continue; }
    first=$(sed -n 's/^go run \.\/examples\/orders.*/&/p' README.md | head -n 1)
    if [ -n "$first" ] && (eval "$first --count 200000 --data $work/first") >"$work/first.out" 2>&1; then value="first command: $(tail -n 1 "$work/first.out")"; else verdict=FAIL; value="first command failed: $(tail -n 2 "$work/first.out" 2>/dev/null)"; fi
    t=$(date +%s); make check >"$work/check.out" 2>&1 || { verdict=FAIL; tail -n 15 "$work/check.out" >&2; }
    t=$(($(date +%s) - t)); [ $t -lt 180 ] || verdict=FAIL; value="$value; make check ${t}s"
    t=$(date +%s); make test >"$work/test.out" 2>&1 || { verdict=FAIL; grep -E '^(---|FAIL|panic)' "$work/test.out" | head -n 15 >&2; }
    value="$value; make test $(($(date +%s) - t))s"
    grep -q 'make test' .ci/run || verdict=FAIL
    cd "$root" || exit 2
    say 1 $verdict "$value" "first command runs, make check < 180 s, make test passes, .ci/run calls it" ;;
  2)
    gotest '^TestKillsExactlyOnce$|^TestKillsAtNamedPoints$' ./accept/kill -timeout 60m -args -kills=$([ $long = 1 ] && echo 100 || echo 25)
    say 2 $verdict "$value" "each order once, seq 1..n, totals equal (100 kills, >= 60 resumed, >= 30 ids; 10 before resumed; 40 at named points)"
    record "kills, exactly-once: $verdict $value" ;;
  3)
    gotest '^TestKillsOtherModes$|^TestScriptedDuplicates$' ./accept/kill -timeout 60m -args -kills=$([ $long = 1 ] && echo 100 || echo 15)
    say 3 $verdict "$value" "at-least-once: lost 0, idempotent state exact, k past the barrier = k duplicates; at-most-once: 0 twice, lost within the reservations, >= half delivered"
    record "kills, other modes: $verdict $value" ;;
  4)
    gotest '^TestPowerLoss' ./accept/powerloss -timeout 120m -args -all -kills=$([ $long = 1 ] && echo 400 || echo 40)
    say 4 $verdict "$value" "every prefix restorable and exact, also after a kill and a second start (40 kills; --long 400)"
    record "power loss: $verdict $value" ;;
  5)
    gotest '^TestReceivingWhileBlocked$' ./internal/task -race
    say 5 $verdict "$value" "queue of A fills to its capacity, its sender stalls only then, B goes on, nothing behind the barrier in the snapshot" ;;
  6)
    seeds=$([ $long = 1 ] && echo 100000 || echo 1000)
    gotest '^TestSimulate(Exactly|AtLeast|AtMost)Once$' ./internal/sim -timeout 60m -args -seeds=$seeds
    v6=$verdict; s6=$value
    gotest '^TestMutations$' ./internal/sim -timeout 60m -args -mutations
    [ $verdict = PASS ] || v6=FAIL
    say 6 $v6 "$seeds seeds a mode: $s6; $value" "100000 seeds a mode (--long), every mutation caught, >= 200 seeds/s reported"
    record "simulator: $v6 $seeds seeds a mode: $s6; $value" ;;
  7)
    t=$([ $long = 1 ] && echo 5m || echo 10s); v7=PASS; s7=""
    for f in FuzzManifest:./internal/checkpoint FuzzBlock:./internal/statefile FuzzRecord:./internal/ckptlog FuzzLines:./connector/file; do
      go test -run '^$' -fuzz "^${f%%:*}\$" -fuzztime $t -fuzzminimizetime 20x "${f#*:}" >"$work/out" 2>&1 || { v7=FAIL; tail -n 10 "$work/out" >&2; }
      s7="$s7 ${f%%:*}=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$work/out" | tail -n 1)"
    done
    gotest 'Damage|Flipped|Truncation|Exchanged|Forged|Skipped|CountsOfTheReference' './internal/checkpoint ./internal/ckptlog ./internal/statefile' -timeout 20m
    [ $verdict = PASS ] || v7=FAIL
    say 7 $v7 "$t each, executions:$s7; damage tests: $value" "5 minutes each (--long), an error naming object and offset, never a wrong value or panic"
    record "fuzzers $t each: $v7$s7" ;;
  8)
    v8=PASS; missing=""
    go test -count=1 -v -run '^TestCase_' ./... >"$work/out" 2>&1 || { v8=FAIL; grep -E '^ *--- FAIL' "$work/out" | head >&2; }
    for c in A01 A04 A06 A07 A09 B01 B02 B03 B05 B08 C01 C02 C04 C05 C07 D01 D02 D03 D09 D13 I01 I02 I03 I05 I07 I08 I12 I13; do
      grep -q -- "--- PASS: TestCase_$c" "$work/out" || { missing="$missing $c"; v8=FAIL; }
    done
    say 8 $v8 "$(grep -c -- '^--- PASS: TestCase_' "$work/out") passed; missing:${missing:- none}" "all 28 cases" ;;
  9)
    v9=PASS; s9=""
    for f in LICENSE README.md DESIGN.md CONTRIBUTING.md CHANGELOG.md docs/format/log.md docs/format/manifest.md docs/format/state.md; do [ -s $f ] || { v9=FAIL; s9="$s9 no $f"; }; done
    go test -count=1 -v -run '^Example' ./... >"$work/out" 2>&1 || { v9=FAIL; grep -E '^--- FAIL' "$work/out" >&2; }
    s9="$s9 $(grep -c -- '^--- PASS: Example' "$work/out") examples ran"
    say 9 $v9 "$s9" "documents are there and true; each public feature has an Example that runs" ;;
  esac
done
exit $failed

#!/usr/bin/env bash
# side_by_side.sh PYTHON BESIDE FOLDER...: the tests in the FOLDERs, in sight, and those in BESIDE in two processes beside them, each with a log.
#
# The tests in BESIDE start real servers and spend half of their time waiting. Their processes share the files between them (tests/turns.py), so that both
# end at about the same time. On a busy machine a server may stall: a test that fails there is run once more, and the log lists it as RERUN.
# What fails anywhere fails the whole. Ctrl-C and TERM end all three, and give what they started time to end.
set -euo pipefail
python=$1
beside=$2
shift 2

turns=$(mktemp -d)
logs=(.cache/integration-1.log .cache/integration-2.log)
running=()
mkdir -p .cache

# pytest ends its servers when it is interrupted. What does not end in time is killed.
end_all() {
  trap '' INT TERM HUP
  kill -INT "${running[@]}" 2>/dev/null || true
  for _ in {1..150}; do
    kill -0 "${running[@]}" 2>/dev/null || break
    sleep 0.2
  done
  kill -KILL "${running[@]}" 2>/dev/null || true
}

trap 'rm -rf "$turns"' EXIT
trap 'end_all; exit 130' INT
trap 'end_all; exit 143' TERM HUP

# Each in a process group of its own: Ctrl-C comes here alone, and is passed on once.
set -m
for log in "${logs[@]}"; do
  "$python" -m pytest -p tests.turns --turns "$turns" --reruns 1 -rR "$beside" </dev/null >"$log" 2>&1 &
  running+=($!)
done
"$python" -m pytest "$@" </dev/null &
running+=($!)
set +m

code=0
wait "${running[2]}" || code=$?
echo "run: $beside, beside the above"
for number in 0 1; do
  wait "${running[number]}" || code=$?
  cat "${logs[number]}"
done
exit $code

#!/bin/sh
# Every failure ends the whole job with the status of the error and one message (two lines) and
# nothing else.
# Usage: failures.sh MPIEXEC PROGRAM [REPETITIONS]
set -u
mpiexec=$1
program=$2
repetitions=${3:-1}
wrong=0

# expect STATUS MESSAGE MPIEXEC-ARGUMENTS...
expect() {
  status=$1
  message=$2
  shift 2
  written=$("$mpiexec" "$@" 2>&1)
  got=$?
  if [ $got -ne "$status" ] || [ "$(printf '%s\n' "$written" | grep -c .)" -gt 2 ] ||
    ! printf '%s\n' "$written" | grep -q "$message"; then
    echo "mpiexec $*: status $got, not $status, or not just one message with '$message':"
    printf '%s\n' "$written"
    wrong=$((wrong + 1))
  fi
}

i=0
while [ $i -lt "$repetitions" ]; do
  i=$((i + 1))
  for n in 3 4; do
    expect 3 'rank 0: ZL301' -n $n "$program" all
    expect 3 "rank $((n - 1)): ZL301" -n $n "$program" last
    expect 3 'rank 0: ZL301' -n $n "$program" first-two
    expect 1 'rank 1: ZL101' -n $n "$program" internal
    expect 3 'rank 1: ZL301' -n $n "$program" while-others-compute
  done
  expect 3 'rank 1: ZL301' -n 3 "$program" while-others-hang
  # Without its connection to mpirun, MPI believes in every process that it is alone.
  expect 7 'ZL702' -n 3 env -u PMI_FD -u PMI_PORT "$program" nobody
done
[ $wrong -eq 0 ]

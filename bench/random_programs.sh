#!/usr/bin/env bash
# A million random programs, each computed by the interpreter, by the second evaluator and by one kernel on the emulator.
#
#     bench/random_programs.sh                                      a million, on the emulator
#     bench/random_programs.sh --programs 100000 --device cuda      on a GPU
#     bench/random_programs.sh --seed 250000 --programs 750000      going on after `next_seed`
#
# Anything after the script's name is given to random-programs; with none of its own, programs are a million. Programs
# that fail are left in failures/, each as it was and made small, headed by the command that shows it again. The exit
# status is 3 if any failed. On a machine without cargo, copy target/release/random-programs: it needs g++ alone.
set -euo pipefail
cd "$(dirname "$0")/.."
program=target/release/random-programs
if command -v cargo >/dev/null; then
    cargo build --release -p stencilc-testing
fi
case " $* " in
*" --programs "*) exec "$program" "$@" ;;
*) exec "$program" --programs 1000000 "$@" ;;
esac

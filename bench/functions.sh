#!/usr/bin/env bash
# Times of the language's own functions and of the device's, on this machine's GPU: microseconds of the median of 50 runs
# with own ones, with the device's, their ratio, and the time without any function.
#
#   bench/functions.sh [STENCILC] [GRID]
set -euo pipefail
stencilc=${1:-target/release/stencilc} grid=${2:-512x512x64}
file=$(dirname "$0")/functions.stn
median() {
    "$stencilc" --json run "$file" --stencil "$1" --precision "$2" --math "$3" --grid "$grid" --device cuda:0 --runs 50 \
        --timings --seed 1 2>/dev/null | sed -n 's/.*"kernel_median_us": *\([0-9.]*\).*/\1/p'
}
printf '%-5s %-12s %10s %10s %8s %10s\n' real stencil 'own us' 'device us' ratio 'none us'
for precision in f64 f32; do
    none=$(median none_at $precision own)
    for stencil in $(sed -n 's/^stencil \([a-z0-9_]*\) .*/\1/p' "$file"); do
        own=$(median "$stencil" $precision own)
        device=$(median "$stencil" $precision device)
        ratio=$(awk "BEGIN { printf \"%.3f\", $own / $device }")
        printf '%-5s %-12s %10s %10s %8s %10s\n' $precision "$stencil" "$own" "$device" "$ratio" "$none"
    done
done

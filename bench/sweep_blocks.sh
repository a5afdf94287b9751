#!/usr/bin/env bash
# Times of a stencil over block shapes, storages and strategies on this machine's GPU, fastest first.
#
#   bench/sweep_blocks.sh laplap [STENCILC] [GRID]
set -euo pipefail
stencil=$1 stencilc=${2:-target/release/stencilc} grid=${3:-512x512x64}
for storage in regular compressed; do
    for access in naive idxvar zloop zloop-sliced; do
        for x in 32 64 128 256; do
            for y in 1 2 4 8; do
                for z in 1 2 4; do
                    threads=$((x * y * z))
                    [ $threads -ge 64 ] && [ $threads -le 512 ] || continue
                    "$stencilc" --json run "$stencil" --grid "$grid" --device cuda:0 --runs 20 --timings --seed 1 \
                        --storage $storage --access $access --block ${x}x${y}x$z 2>/dev/null |
                        python3 -c 'import json,sys; t = json.load(sys.stdin)["timings"]; print("%.2f us" % t["kernel_median_us"])' |
                        sed "s/^/$storage $access ${x}x${y}x$z /"
                done
            done
        done
    done
done | sort -k4 -g

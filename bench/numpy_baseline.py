#!/usr/bin/env python3
"""Times NumPy against the interpreter of stencilc, for laplap and hdiff in double precision.

NumPy computes whole-array slices, as one writes them; the interpreter runs `stencilc run --device cpu`. Both work on
512 x 512 x 64 cells in arrays (nk, nj, ni), halo included. Printed are medians of 5, in milliseconds.

    cargo build --release
    python3 bench/numpy_baseline.py [target/release/stencilc]
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np

RUNS = 5


def laplacian(a):
    """Minus the five-point Laplacian, on all cells but the outermost along i and j."""
    return 4 * a[:, 1:-1, 1:-1] - a[:, 1:-1, :-2] - a[:, 1:-1, 2:] - a[:, :-2, 1:-1] - a[:, 2:, 1:-1]


def laplap(phi):
    res = np.full_like(phi, np.nan)
    res[:, 2:-2, 2:-2] = laplacian(laplacian(phi))
    return res


def limited(flux, gradient):
    return np.where(flux * gradient > 0, 0.0, flux)


def hdiff(phi, coeff):
    res = np.full_like(phi, np.nan)
    lap = laplacian(phi)
    inner = phi[:, 2:-2, 2:-2]
    # A flux through each face of the inner cells: one more along its own axis than there are cells.
    fx = limited(lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1], phi[:, 2:-2, 2:-1] - phi[:, 2:-2, 1:-2])
    fy = limited(lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1], phi[:, 2:-1, 2:-2] - phi[:, 1:-2, 2:-2])
    divergence = fx[:, :, 1:] - fx[:, :, :-1] + fy[:, 1:, :] - fy[:, :-1, :]
    res[:, 2:-2, 2:-2] = inner - coeff[:, 2:-2, 2:-2] * divergence
    return res


def numpy_seconds(stencil, fields):
    stencil(*fields)  # Memory is first touched here.
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        stencil(*fields)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def interpreter_seconds(binary, stencil, grid):
    command = [binary, "run", stencil, "--grid", grid, "--device", "cpu", "--timings", "--json"]
    seconds = []
    for _ in range(RUNS):
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        seconds.append(json.loads(done.stdout)["timings"]["compute"])
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", nargs="?", default="target/release/stencilc", help="default: %(default)s")
    parser.add_argument("--grid", default="512x512x64", help="cells along i, j and k; default: %(default)s")
    parser.add_argument("--numpy-only", action="store_true", help="leave the interpreter out")
    arguments = parser.parse_args()
    if not arguments.numpy_only and not Path(arguments.binary).is_file():
        parser.error(f"{arguments.binary} is not there: build it with `cargo build --release`, or give its path")

    ni, nj, nk = (int(n) for n in arguments.grid.split("x"))
    random = np.random.default_rng(0)
    phi = random.uniform(-1, 1, (nk, nj, ni))
    coeff = random.uniform(0, 1 / 32, (nk, nj, ni))

    print(f"grid {arguments.grid}, f64, NumPy {np.__version__}, median of {RUNS}")
    print(f"{'stencil':<10}{'NumPy':>12}{'stencilc':>12}{'ratio':>9}")
    for stencil, fields in ((laplap, (phi,)), (hdiff, (phi, coeff))):
        name = stencil.__name__
        ours = numpy_seconds(stencil, fields)
        line = f"{name:<10}{1e3 * ours:>9.1f} ms"
        if not arguments.numpy_only:
            theirs = interpreter_seconds(arguments.binary, name, arguments.grid)
            line += f"{1e3 * theirs:>9.1f} ms{ours / theirs:>8.2f}x"
        print(line)


if __name__ == "__main__":
    main()

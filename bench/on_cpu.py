#!/usr/bin/env python3
"""Stencils on the CPU in one process, on the same arrays: NumPy, Numba, the interpreter of stencilc, and its kernels for the CPU.

    pip install numpy numba ./python
    python3 bench/on_cpu.py

NumPy computes whole slices, as one writes them; Numba loops over levels in parallel, with the arithmetic in the order of the text; of
stencilc what is called is bound to the arrays before. All are on 512 x 512 x 64 cells of double precision, and must come to the same numbers,
stencilc's kernels to the very bits of its interpreter. Printed are medians, in milliseconds, beside the fastest copy of one array.
"""

import argparse
import statistics
import time

import numba
import numpy as np
import stencilc

RUNS = 7


def laplacian(a):
    """Minus the five-point Laplacian, on all cells but the outermost along i and j."""
    return 4 * a[:, 1:-1, 1:-1] - a[:, 1:-1, :-2] - a[:, 1:-1, 2:] - a[:, :-2, 1:-1] - a[:, 2:, 1:-1]


def laplap_numpy(phi, res):
    res[:, 2:-2, 2:-2] = laplacian(laplacian(phi))


def limited(flux, gradient):
    return np.where(flux * gradient > 0, 0.0, flux)


def hdiff_numpy(phi, coeff, res):
    lap = laplacian(phi)
    inner = phi[:, 2:-2, 2:-2]
    # A flux through each face of the inner cells: one more along its own axis than there are cells.
    fx = limited(lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1], phi[:, 2:-2, 2:-1] - phi[:, 2:-2, 1:-2])
    fy = limited(lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1], phi[:, 2:-1, 2:-2] - phi[:, 1:-2, 2:-2])
    divergence = fx[:, :, 1:] - fx[:, :, :-1] + fy[:, 1:, :] - fy[:, :-1, :]
    res[:, 2:-2, 2:-2] = inner - coeff[:, 2:-2, 2:-2] * divergence


@numba.njit(inline="always")
def at(a, k, j, i):
    return 4 * a[k, j, i] - a[k, j, i - 1] - a[k, j, i + 1] - a[k, j - 1, i] - a[k, j + 1, i]


@numba.njit(inline="always")
def limit(flux, gradient):
    return 0.0 if flux * gradient > 0 else flux


@numba.njit(parallel=True)
def laplap_numba(phi, res):
    for k in numba.prange(phi.shape[0]):
        for j in range(2, phi.shape[1] - 2):
            for i in range(2, phi.shape[2] - 2):
                res[k, j, i] = (4 * at(phi, k, j, i) - at(phi, k, j, i - 1) - at(phi, k, j, i + 1)
                                - at(phi, k, j - 1, i) - at(phi, k, j + 1, i))


@numba.njit(parallel=True)
def hdiff_numba(phi, coeff, res):
    for k in numba.prange(phi.shape[0]):
        for j in range(2, phi.shape[1] - 2):
            for i in range(2, phi.shape[2] - 2):
                lap = at(phi, k, j, i)
                here = phi[k, j, i]
                east = limit(at(phi, k, j, i + 1) - lap, phi[k, j, i + 1] - here)
                west = limit(lap - at(phi, k, j, i - 1), here - phi[k, j, i - 1])
                north = limit(at(phi, k, j + 1, i) - lap, phi[k, j + 1, i] - here)
                south = limit(lap - at(phi, k, j - 1, i), here - phi[k, j - 1, i])
                res[k, j, i] = here - coeff[k, j, i] * (east - west + north - south)


@numba.njit(parallel=True)
def copy_numba(a, b):
    for k in numba.prange(a.shape[0]):
        for j in range(a.shape[1]):
            for i in range(a.shape[2]):
                b[k, j, i] = a[k, j, i]


def milliseconds(call):
    # What is compiled and what memory is touched first is not counted.
    call()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid", default="512x512x64", help="cells along i, j and k; default: %(default)s")
    arguments = parser.parse_args()
    ni, nj, nk = (int(n) for n in arguments.grid.split("x"))
    random = np.random.default_rng(0)
    fields = {"phi": random.uniform(-1, 1, (nk, nj, ni)), "coeff": random.uniform(0, 1 / 32, (nk, nj, ni))}

    a, b = fields["phi"], np.zeros((nk, nj, ni))
    copying = stencilc.compile("stencil copy { in a; out b; b = a }").using(device="native").bind(a=a, b=b)
    copy = min(milliseconds(copying), milliseconds(lambda: copy_numba(a, b)))
    print(f"{arguments.grid}, f64, {numba.get_num_threads()} threads, NumPy {np.__version__}, Numba {numba.__version__}, "
          f"medians of {RUNS}; a copy takes {copy:.1f} ms")
    print(f"{'':8}{'NumPy':>10}{'Numba':>10}{'interpreter':>14}{'native':>10}{'of the copy':>14}")
    # How fast a kernel could be that did nothing but pass its fields: the copy passes two.
    for name, by_numpy, by_numba in (("laplap", laplap_numpy, laplap_numba), ("hdiff", hdiff_numpy, hdiff_numba)):
        inputs = {"phi": fields["phi"]} if name == "laplap" else fields
        given = {way: np.zeros((nk, nj, ni)) for way in ("numpy", "numba", "cpu", "native")}
        stencil = stencilc.load(name)
        times = {
            "numpy": milliseconds(lambda: by_numpy(*inputs.values(), given["numpy"])),
            "numba": milliseconds(lambda: by_numba(*inputs.values(), given["numba"])),
        }
        for device in ("cpu", "native"):
            bound = stencil.using(device=device).bind(**inputs, res=given[device])
            times[device] = milliseconds(bound)
        inner = np.s_[:, 2:-2, 2:-2]
        assert np.array_equal(given["native"][inner], given["cpu"][inner]), name
        for way in ("numpy", "numba"):
            # These do not contract products and sums.
            assert np.allclose(given[way][inner], given["cpu"][inner], rtol=1e-12, atol=1e-12), (name, way)
        share = copy * (len(inputs) + 1) / 2 / times["native"]
        print(f"{name:8}{times['numpy']:10.1f}{times['numba']:10.1f}{times['cpu']:14.1f}{times['native']:10.1f}{share:14.2f}")


if __name__ == "__main__":
    main()

"""laplap and hdiff on a grid from a file, in NumPy, and compared with stencilc bit for bit.

    python3 walk.py quad.npz [stencilc]
"""

import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

grid = np.load(sys.argv[1])
stencilc = sys.argv[2] if len(sys.argv) > 2 else "stencilc"


def step(a, direction):
    """Of every cell the value of its neighbour; NaN where there is none."""
    return np.where(grid[direction] >= 0, a[:, grid[direction]], np.nan)


def laplacian(a):
    # 4*a is exact, so it makes no difference that the language fuses 4*a - a[i-1].
    return 4 * a - step(a, "left") - step(a, "right") - step(a, "top") - step(a, "bottom")


def fused(a, b, c):
    """c - a*b, rounded once."""
    def one(a, b, c):
        return float(Fraction(c) - Fraction(a) * Fraction(b)) if np.isfinite(b) else np.nan
    return np.vectorize(one)(a, b, c)


def laplap(phi, coeff):
    return laplacian(laplacian(phi))


def hdiff(phi, coeff):
    lap = laplacian(phi)

    def limited(direction):
        flux, gradient = step(lap, direction) - lap, step(phi, direction) - phi
        return np.where(flux * gradient > 0, 0, flux + 0 * gradient)

    fx, fy = limited("right"), limited("bottom")
    return fused(coeff, fx - step(fx, "left") + fy - step(fy, "top"), phi)


random = np.random.default_rng(1)
shape = (3, len(grid["left"]))
phi, coeff = random.uniform(-1, 1, shape), random.uniform(0, 1 / 32, shape)
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    np.save(folder / "phi.npy", phi)
    np.save(folder / "coeff.npy", coeff)
    for stencil in [laplap, hdiff]:
        name, inputs = stencil.__name__, ["--in", f"phi={folder / 'phi.npy'}"]
        if stencil is hdiff:
            inputs += ["--in", f"coeff={folder / 'coeff.npy'}"]
        call = [stencilc, "run", name, "--grid", sys.argv[1], *inputs, "--out", f"res={folder / 'res.npy'}"]
        call += ["--device", "cpu"]
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
        found, expected = np.load(folder / "res.npy"), stencil(phi, coeff)
        # 0 and -0 differ; any NaN equals any NaN.
        same_sign = np.isnan(found) | (np.signbit(found) == np.signbit(expected))
        equal = np.array_equal(found, expected, equal_nan=True) and same_sign.all()
        print(name, "equal" if equal else "DIFFERS", f"on {np.isfinite(found).sum()} of {found.size} values")
        if not equal:
            sys.exit(1)

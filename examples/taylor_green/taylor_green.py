#!/usr/bin/env python3
"""The Taylor-Green vortex for navier_stokes.stn: how it starts, and what became of it. Needs NumPy.

    taylor_green.py start N FOLDER            arrays of N^3 cells of a cube of side 2*pi, a tenth as fast as sound
    taylor_green.py measure FOLDER NU DT      of arrays that `run` wrote, ux_STEP.npy and so on: energy and dissipation
"""

import pathlib
import sys

import numpy as np

SOUND = 10.0


def start(n: int, folder: pathlib.Path) -> None:
    """Writes the fields of G. I. Taylor and A. E. Green (1937), with the density that their pressure needs."""
    x = np.arange(n) * 2 * np.pi / n
    z, y, x = np.meshgrid(x, x, x, indexing="ij", sparse=True)
    fields = {
        "ux": np.sin(x) * np.cos(y) * np.cos(z),
        "uy": -np.cos(x) * np.sin(y) * np.cos(z),
        "uz": 0 * (x + y + z),
        "lnrho": np.log1p((np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2) / (16 * SOUND**2)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in fields.items():
        np.save(folder / f"{name}.npy", values.astype(np.float32))


def derivative(a: np.ndarray, axis: int, spacing: float) -> np.ndarray:
    """A first derivative of sixth order on a periodic axis."""
    weights = [(1, 3 / 4), (2, -3 / 20), (3, 1 / 60)]
    return sum(w * (np.roll(a, -m, axis) - np.roll(a, m, axis)) for m, w in weights) / spacing


def measure(folder: pathlib.Path, viscosity: float, dt: float) -> None:
    """Prints, step by step, the energy a volume and how fast vorticity says that it goes: 2 * viscosity * enstrophy."""
    for path in sorted(folder.glob("ux_*.npy")):
        step = path.stem.split("_")[1]
        u, v, w, lnrho = (np.load(folder / f"{name}_{step}.npy") for name in ["ux", "uy", "uz", "lnrho"])
        rho, spacing = np.exp(lnrho.astype(np.float64)), 2 * np.pi / u.shape[0]
        energy = np.mean(rho * (u**2 + v**2 + w**2)) / 2
        d = lambda a, axis: derivative(a, axis, spacing)
        vorticity = [d(w, 1) - d(v, 0), d(u, 0) - d(w, 2), d(v, 2) - d(u, 1)]
        enstrophy = np.mean(rho * sum(part**2 for part in vorticity)) / 2
        print(f"time {int(step) * dt:.3f}  energy {energy:.7f}  dissipation {2 * viscosity * enstrophy:.7f}")
        np.save(folder / f"vorticity_{step}.npy", np.sqrt(sum(part[:, :, :1] ** 2 for part in vorticity)).reshape(1, *u.shape[:2]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["start", n, folder]:
            start(int(n), pathlib.Path(folder))
        case ["measure", folder, viscosity, dt]:
            measure(pathlib.Path(folder), float(viscosity), float(dt))
        case _:
            sys.exit(__doc__)

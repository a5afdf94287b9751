"""Writes the grids that `grid_files.rs` reads: 3x2 cells in rows, in every type that NumPy has for whole numbers.

    python3 grid_files.py
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "grid_files"
GRID = {
    "left": [-1, 0, 1, -1, 3, 4],
    "right": [1, 2, -1, 4, 5, -1],
    "top": [-1, -1, -1, 0, 1, 2],
    "bottom": [3, 4, 5, -1, -1, -1],
}
POSITIONS = {"x": [0, 1, 2, 0, 1, 2], "y": [0, 0, 0, 1, 1, 1]}


def grid(dtype):
    return {name: np.array(numbers).astype(dtype) for name, numbers in GRID.items()}


for dtype in ["i1", "i2", "i4", "i8", ">i4", "u1", "u2", "u4", "u8"]:
    np.savez(FOLDER / f"{dtype.replace('>', 'big_')}.npz", **grid(dtype))
for dtype in ["f4", "f8", "i8"]:
    positions = {name: np.array(numbers, dtype) for name, numbers in POSITIONS.items()}
    np.savez_compressed(FOLDER / f"places_{dtype}.npz", **grid("i8"), **positions)

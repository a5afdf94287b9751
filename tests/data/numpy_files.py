"""Writes numpy_files.json: files as NumPy writes them, each with the numbers that NumPy reads from it.

    python3 tests/data/numpy_files.py > tests/data/numpy_files.json
"""

import io
import json

import numpy as np
from numpy.lib import format as npy


def written(array, version=None):
    """The bytes of a file that holds `array`."""
    file = io.BytesIO()
    npy.write_array(file, array, version=version)
    return file.getvalue()


def case(name, array, version=None):
    """A file, and as what it is to be read: as f32, f64, i32 or bool, each number by its bits."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    element = {"b": "bool", "i": "i32", "u": "i32", "f": "f64" if size == 8 else "f32"}[kind]
    numbers = array.astype({"bool": "|u1", "i32": "<i4", "f32": "<f4", "f64": "<f8"}[element])
    bits = numbers.ravel(order="C").view({"bool": "<u1", "i32": "<u4", "f32": "<u4", "f64": "<u8"}[element])
    return {
        "name": name,
        "file": written(array, version).hex(),
        "element": element,
        "shape": list(array.shape),
        "bits": [str(number) for number in bits],
    }


random = np.random.default_rng(1)
cases = []
for dtype in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "?"]:
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    for order in "CF":
        count = 24
        if kind == "b":
            numbers = random.integers(0, 2, count)
        elif kind == "f":
            numbers = random.integers(0, 256, (count, size), dtype=np.uint8).view(dtype).ravel()
            numbers[:4] = [0.0, -0.0, np.inf, 1.5]
            numbers = np.where(np.isnan(numbers), -2.5, numbers)
        else:
            least = max(-(2**31), -(2 ** (8 * size - 1))) if kind == "i" else 0
            most = min(2**31, 2 ** (8 * size - (1 if kind == "i" else 0)))
            numbers = random.integers(least, most, count)
            numbers[:2] = [least, most - 1]
        array = np.asarray(numbers.astype(dtype).reshape(2, 3, 4), order=order)
        cases.append(case(f"{dtype} {order}", array))
for shape in [(), (1,), (0,), (3, 0, 2), (1, 1, 1, 1, 2), (7,), (5, 3)]:
    for order in "CF":
        cases.append(case(f"{shape} {order}", np.asarray(random.random(shape), order=order, dtype="<f8")))
for version in [(1, 0), (2, 0), (3, 0)]:
    cases.append(case(f"version {version}", np.arange(6, dtype="<i2").reshape(2, 3), version))

refused = [
    {"name": name, "file": written(np.asarray(array)).hex(), "says": says}
    for name, array, says in [
        ("complex", np.ones(2, "<c16"), "complex numbers"),
        ("long double", np.ones(2, "<f16"), "128-bit reals"),
        ("text", np.array(["a", "bc"]), "text, not numbers"),
        ("bytes", np.array([b"a", b"bc"]), "text, not numbers"),
        ("times", np.array(["2020-01-01"], "M8[s]"), "times"),
        ("time steps", np.ones(2, "m8[ms]"), "times"),
        ("records", np.ones(2, [("u", "<f4"), ("v", "<f8")]), "structured array"),
        ("records in records", np.ones(2, [("w", [("u", "<f4")], (2,))]), "structured array"),
        ("raw", np.zeros(2, "V3"), "raw bytes"),
        ("objects", np.array([None, {}], object), "Python objects"),
        ("too large", np.array([2**31]), "the integer 2147483648"),
        ("too large and unsigned", np.array([2**32 - 1], ">u4"), "the integer 4294967295"),
    ]
]
lines = [f"\"{what}\": [\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" for what, entries in [("read", cases), ("refused", refused)]]
print(f"{{\n\"numpy\": \"{np.__version__}\",\n" + ",\n".join(lines) + "\n}")

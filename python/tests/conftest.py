"""What the tests share."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import stencilc

LAPLAP = """
stencil laplap { in phi; out res; let lap = l(phi); res = l(lap) }
fn l(a) = 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]
"""

#: One input, a parameter, an output; something on levels alone; something that is changed; and two outputs.
MIX = """
stencil mix {
    in a; in c on (k); in s on (i, j); inout u; param dt: real
    out b; out flat on (i, j)
    let m = dt * (a[i-1] + a[i+1]) + c
    b = m
    u = u[j-1] + m
    flat = 2 * s[i+1]
}
"""

WAVE = """
program wave {
    inout u, v; param n: int = 9
    boundary { i: periodic, j: periodic }
    repeat n { u, v = move(u, v) }
}
stencil move { in u, v; out a, b; b = v + 0.1*(u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4*u); a = u + 0.1*v }
"""


def lap(a: Any) -> Any:
    """The Laplacian of `laplap`, where it exists, in the order of its operations."""
    return 4 * a[:, 1:-1, 1:-1] - a[:, 1:-1, :-2] - a[:, 1:-1, 2:] - a[:, :-2, 1:-1] - a[:, 2:, 1:-1]


@pytest.fixture
def phi() -> Any:
    return np.random.default_rng(1).random((3, 9, 11))


@pytest.fixture
def laplap() -> stencilc.Text:
    return stencilc.compile(LAPLAP, name="laplap.stn")


def hears_interrupts() -> None:
    """Lets a process that is started hear interrupts, also where the tests run in the background, where shells let nobody hear them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def told(error: Any) -> str:
    """What a test sees of an error: no word of the command line or of Rust is in it."""
    text = str(error.value)
    for word in ("--", "Job::", "Lent::", "Domain::", "Arrays::"):
        assert word not in text, text
    return text


def command(*words: str) -> None:
    """Does what the command line does with these words."""
    subprocess.run([sys.executable, "-m", "stencilc", *words], check=True, stdout=subprocess.DEVNULL)


HERE = pathlib.Path(__file__).parent

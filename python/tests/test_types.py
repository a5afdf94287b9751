"""The types of the package, as mypy sees them."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import stencilc


def test_mypy_accepts_the_package_and_its_users(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    assert stencilc.__file__ is not None
    package = pathlib.Path(stencilc.__file__).parent
    assert (package / "py.typed").exists()
    user = pathlib.Path(__file__).with_name("typed.py")
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(user), "-p", "stencilc"]
    # One after the other: mypy takes files or packages.
    for own in ([*words[:-2]], [*words[:-3], "-p", "stencilc"]):
        done = subprocess.run(own, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr

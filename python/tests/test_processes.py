"""Programs that several processes compute, as `mpirun` starts them."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, List

import numpy as np
import pytest
import stencilc
from conftest import LAPLAP, told

SCRIPT = """
import sys
import numpy as np
import stencilc

heat = stencilc.load("heat").programs["heat_walls"].using(device=sys.argv[1], processes=True)
run = heat.start(t=np.load("t.npy"), wall=20, steps=30)
assert run.step(10) == 10
run.save("way.npz")
run.plot("t", "way.png")
found = run.finish()["t"]
again = heat.resume("way.npz", steps=30).finish()["t"]
assert np.array_equal(found, again)
np.save(f"found_{run.rank}_of_{run.ranks}.npy", found)
"""


def mpirun(count: int, folder: pathlib.Path, *words: str) -> "subprocess.CompletedProcess[str]":
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    options: List[str] = ["--oversubscribe"] if "Open MPI" in version else []
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    call = ["mpirun", *options, "-n", str(count), sys.executable, *words]
    return subprocess.run(call, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.mark.skipif(not (shutil.which("mpirun") and shutil.which("mpicc")), reason="no mpirun with mpicc")
@pytest.mark.parametrize("device, count", [("cpu", 3), ("emulate", 2)])
def test_processes_leave_the_bits_of_one(tmp_path: pathlib.Path, device: str, count: int) -> None:
    t = np.random.default_rng(1).uniform(0, 100, (2, 13, 9))
    np.save(tmp_path / "t.npy", t)
    (tmp_path / "heat.py").write_text(SCRIPT)
    done = mpirun(count, tmp_path, "heat.py", device)
    assert done.returncode == 0, done.stderr
    expected = stencilc.load("heat").programs["heat_walls"].using(device="cpu").start(t=t, wall=20, steps=30).finish()["t"]
    for rank in range(count):
        np.testing.assert_array_equal(np.load(tmp_path / f"found_{rank}_of_{count}.npy"), expected)
    assert (tmp_path / "way.png").stat().st_size > 100


def test_alone_it_is_one(tmp_path: pathlib.Path) -> None:
    heat = stencilc.load("heat").programs["heat_walls"].using(device="cpu", processes=True)
    run = heat.start(t=np.full((1, 4, 4), 80.0), wall=20, steps=3)
    assert (run.rank, run.ranks) == (0, 1)


def test_what_processes_are_not_for() -> None:
    laplap: Any = stencilc.compile(LAPLAP).using(processes=True)
    for call in (lambda: laplap(phi=np.zeros((2, 8, 8))), lambda: laplap.verify((2, 8, 8)), lambda: laplap.bind(phi=np.zeros((2, 8, 8)))):
        with pytest.raises(stencilc.Error) as error:
            call()
        assert "`processes` is for what is started" in told(error)
    with pytest.raises(stencilc.Error) as error:
        stencilc.load("heat").programs["heat_walls"].using(processes="many").start(t=np.zeros((1, 4, 4)), wall=20)
    assert "many is no value for `processes`" in told(error) and "True or False" in told(error)

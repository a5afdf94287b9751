"""The command line that comes along."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
from typing import Any

import pytest
import stencilc
from conftest import hears_interrupts

#: As it was installed, and as a module.
CALLS = [[sys.executable, "-m", "stencilc"]]
SCRIPT = pathlib.Path(sys.executable).with_name("stencilc")
if SCRIPT.exists():
    CALLS.append([str(SCRIPT)])


def call(words: Any, *further: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*words, *further], capture_output=True, text=True, timeout=300, **options)


@pytest.mark.parametrize("words", CALLS)
def test_it_is_the_same_program(words: Any, tmp_path: pathlib.Path) -> None:
    version = call(words, "--version")
    assert version.stdout == f"stencilc {stencilc.__version__}\n" and version.returncode == 0
    done = call(words, "run", "laplap", "--grid", "16x12x2", "--device", "cpu", "--json")
    assert done.returncode == 0 and '"stencil": "laplap"' in done.stdout
    wrong = call(words, "run", "laplop")
    assert wrong.returncode == 1 and "did you mean `laplap`?" in wrong.stderr and wrong.stdout == ""
    unknown = call(words, "compile", "laplap")
    assert unknown.returncode == 2 and "write `stencilc build`" in unknown.stderr and "Usage: stencilc" in unknown.stderr
    assert call(words).returncode == 2


def test_a_result_that_goes_to_a_file_is_whole(tmp_path: pathlib.Path) -> None:
    for name in ("one", "two"):
        with open(tmp_path / name, "w") as file:
            subprocess.run([*CALLS[0], "list", "stencils"], check=True, stdout=file)
    assert "laplap" in (tmp_path / "one").read_text()


def test_a_reader_may_leave() -> None:
    shell = shutil.which("sh")
    done = call([shell, "-c", f"{' '.join(CALLS[0])} build laplap --emit cuda | head -n 1"])
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 1


def test_an_interrupt_ends_it_at_once() -> None:
    words = ["run", "diffusion4", "--grid", "64x64x64", "--draw", "--set", "steps=1000000000", "--device", "cpu"]
    process = subprocess.Popen(
        [*CALLS[0], *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=hears_interrupts,
    )
    assert process.stderr is not None
    # It says what was drawn when it is about to compute.
    for line in process.stderr:
        if "drawn at random" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT


def test_files_are_written_where_it_is_called(tmp_path: pathlib.Path) -> None:
    done = call(CALLS[-1], "new", "own", cwd=tmp_path)
    assert done.returncode == 0, done
    assert stencilc.load(tmp_path / "own.stn").stencils


def test_nvrtc_of_the_environment_is_found(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    # It is looked for by its name, and told even if it turns out to be none.
    (folder / "libnvrtc.so.13").write_bytes(b"no library")
    own = {name: value for name, value in os.environ.items() if name != "STENCILC_NVRTC"}
    told = call(CALLS[0], "doctor", env={**own, "PYTHONPATH": str(tmp_path)})
    assert str(folder) in told.stdout + told.stderr, told

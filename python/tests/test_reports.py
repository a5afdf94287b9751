"""What is verified, tuned and tested from Python."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import stencilc
from conftest import LAPLAP, MIX, WAVE, command, told

TESTED = LAPLAP + """
test "a linear field has no Laplacian" {
    laplap { phi = 2*i + 3*j }
    expect res == 0
}
test "of i^4 24 is left" {
    laplap { phi = i**4 }
    expect res == 24
}
"""

OVER = """
mesh plane { set edge, cell; map edge.cells -> cell[2] }
stencil mean over plane.edge { in a on cell; out b; b = 0.5 * (a[cells.0] + a[cells.1]) }
test "a mean is between" {
    mean { a = 2 }
    expect b == 2
}
"""


def has_compiler() -> bool:
    return subprocess.run(["sh", "-c", "command -v c++"], capture_output=True).returncode == 0


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler")


@needs_compiler
def test_kernels_are_verified(laplap: stencilc.Text, capfd: Any) -> None:
    report = laplap.verify((3, 9, 11), device="emulate", storage="regular", access=["idxvar", "tile"])
    assert report.device == "emulate" and report.equal == 4 and report.totals["failed"] == 0
    assert str(report).splitlines()[-1] == "in all: 4 equal" and "laplap f64 11x9x3: 2 equal" in report.text
    assert [own["precision"] for own in report.data["cases"]] == ["f32", "f64"] or len(report.data["cases"]) == 2
    assert any("kernels run on the CPU" in own for own in report.notes)
    assert repr(report) == "<stencilc verification: in all: 4 equal>"
    # It is told, and nothing is printed.
    assert capfd.readouterr() == ("", "")
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.text = ""  # type: ignore[misc]
    chosen = laplap.using(access="tile", tile=(2, 4), precision="f32", device="emulate").verify(np.zeros((3, 9, 11)))
    assert chosen.equal == 1 and "--tile 2x4" in chosen.data["cases"][0]["combinations"][0]["options"]
    mix = stencilc.compile(MIX).using(device="emulate", access="naive", storage="regular", precision="f64")
    assert mix.verify((3, 9, 11), dt=0.25, seed=7).data["cases"][0]["seed"] == 7


@needs_compiler
def test_what_is_verified_is_what_the_command_line_verifies(tmp_path: pathlib.Path) -> None:
    (tmp_path / "laplap.stn").write_text(LAPLAP)
    words = ["verify", "laplap.stn", "--json", "--grid", "11x9x3", "--device", "emulate", "--access", "idxvar", "--precision", "f64"]
    done = subprocess.run([sys.executable, "-m", "stencilc", *words], check=True, capture_output=True, cwd=tmp_path)
    own = stencilc.compile(LAPLAP, name="laplap.stn").verify((3, 9, 11), device="emulate", access="idxvar", precision="f64")
    assert json.loads(done.stdout) == own.data


@needs_compiler
def test_programs_and_meshes_are_verified(tmp_path: pathlib.Path) -> None:
    wave = stencilc.compile(WAVE).programs["wave"].using(device="emulate", precision="f64", access="naive", storage="regular")
    report = wave.verify((2, 8, 12), fuse="merged", times=2)
    assert report.equal >= 1 and report.data["programs"][0]["program"] == "wave"
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    command("grid", "make", "quadtree", "--size", "16x16", "-o", str(tmp_path / "quad.npz"))
    mesh, cells = stencilc.mesh(tmp_path / "airfoil.npz"), stencilc.cells(tmp_path / "quad.npz")
    mean = stencilc.compile(OVER).stencils["mean"]
    assert mean.verify(mesh, device="emulate", precision="f64", strategy="owner", vectors="aos", order="none").equal >= 1
    s = stencilc.compile("stencil s { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }")
    assert s.verify(cells, device="emulate", precision="f64", storage="compressed", access="idxvar", levels=3).equal == 1


@needs_compiler
def test_what_proves_nothing_is_an_error(laplap: stencilc.Text) -> None:
    how = dict(device="emulate", storage="regular", precision="f64")
    with pytest.raises(stencilc.Error) as error:
        laplap.verify((3, 9, 11), access="shared", **how)
    shown = told(error)
    assert error.value.fault == "check" and "refused 1: `shared` access" in shown and "nothing was compared: 1 combination" in shown
    endless = stencilc.compile("stencil s { in a; out b; b = a / 0 - a / 0 }")
    with pytest.raises(stencilc.Error) as error:
        endless.verify((3, 9, 11), access="naive", **how)
    shown = told(error)
    assert error.value.fault == "check" and shown.splitlines()[-1] == "1 of 1 combination failed"
    assert "s f64 11x9x3: 1 failed" in shown and "297 of the 297 values of `b` are not finite" in shown


@needs_compiler
def test_what_is_tuned_is_the_fastest_and_is_remembered(tmp_path: pathlib.Path, monkeypatch: Any, capfd: Any) -> None:
    monkeypatch.setenv("STENCILC_TUNED", str(tmp_path))
    laplap = stencilc.compile(LAPLAP, name="laplap.stn").using(device="native")
    found = laplap.tune((3, 16, 20), budget=0.1, access=["rows", "idxvar"], storage="regular")
    (fastest,) = found.fastest
    assert fastest.precision == "f64" and fastest.grid == "20x16x3" and fastest.us is not None and fastest.us > 0
    assert "--access" in fastest.options and 1 <= fastest.tried <= fastest.among
    assert fastest.kept is not None and pathlib.Path(fastest.kept).is_relative_to(tmp_path)
    assert f"remembered in {fastest.kept}" in found.text and "the fastest:" in str(found)
    forgotten = laplap.tune((3, 16, 20), budget=0.1, access="rows", forget=True)
    assert forgotten.fastest[0].kept is None
    wave = stencilc.compile(WAVE).programs["wave"].using(device="native")
    (plan,) = wave.tune((2, 16, 20), budget=0.1, fuse="merged", access="rows", storage="regular").fastest
    assert plan.us is not None and "merged" in plan.options
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    mean = stencilc.compile(OVER).stencils["mean"].using(device="native")
    (over,) = mean.tune(stencilc.mesh(tmp_path / "airfoil.npz"), budget=0.1).fastest
    assert "--strategy" in over.options and over.us is not None and over.kept is not None
    assert capfd.readouterr() == ("", "")


@needs_compiler
def test_what_was_tuned_is_taken_by_later_calls(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("STENCILC_TUNED", str(tmp_path))
    phi = np.random.default_rng(3).random((3, 16, 20))
    laplap = stencilc.compile(LAPLAP).using(device="native")
    usual = laplap.bind(phi=phi)
    assert usual.notes == []
    (fastest,) = laplap.tune((3, 16, 20), budget=0.1, access="idxvar", storage="regular", blocks="32x2x1").fastest
    again = stencilc.compile(LAPLAP).using(device="native")
    tuned = again.bind(phi=phi)
    (note,) = tuned.notes
    # What one has without a search is measured, too, and may be the fastest.
    assert note.startswith("tuned for ") and fastest.options.split(" --precision")[0] in note and "(using(untuned=True) takes" in note
    np.testing.assert_array_equal(tuned(), usual())
    assert again.using(untuned=True).bind(phi=phi).notes == []
    assert again.using(access="rows").bind(phi=phi).notes == []
    assert again.using(device="cpu").bind(phi=phi).notes == []
    assert again.bind(phi=np.zeros((30, 160, 200))).notes == []
    # What does not compute on arrays as they lie is not taken, and that is noted.
    assert fastest.kept is not None
    kept = pathlib.Path(fastest.kept)
    assert kept.read_text().count('"storage": "regular"') == 1
    kept.write_text(kept.read_text().replace('"storage": "regular"', '"storage": "compressed"').replace('"rows"', '"naive"'))
    other = stencilc.compile(LAPLAP).using(device="native").bind(phi=phi)
    (note,) = other.notes
    assert note.startswith("what was tuned is not taken: ") and "no other storage" in note and "Job::" not in note
    np.testing.assert_array_equal(other(), usual())


@needs_compiler
def test_what_was_tuned_is_taken_by_later_runs(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("STENCILC_TUNED", str(tmp_path))
    u, v = np.random.default_rng(5).random((2, 2, 16, 20))
    wave = stencilc.compile(WAVE).programs["wave"].using(device="native")
    usual = wave.start(u=u, v=v)
    assert usual.notes == []
    (plan,) = wave.tune((2, 16, 20), budget=0.1, fuse="separate", access="idxvar", storage="regular", blocks="32x2x1").fastest
    for gpus in (1, 2):
        run = wave.using(gpus=gpus).start(u=u, v=v)
        (note,) = run.notes
        assert note.startswith("tuned for ") and plan.options in note and "(using(untuned=True) takes the usual plan)" in note
        np.testing.assert_array_equal(run.finish()["u"], usual.finish()["u"])
    assert wave.using(untuned=True).start(u=u, v=v).notes == [] == wave.using(device="cpu").start(u=u, v=v).notes
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    mesh = stencilc.mesh(tmp_path / "airfoil.npz")
    mean = stencilc.compile(OVER).stencils["mean"].using(device="native")
    a = np.arange(72.0)
    expected = mean(mesh, a=a)
    mean.tune(mesh, budget=0.1)
    run = mean.start(mesh, a=a)
    assert any(own.startswith("tuned for ") for own in run.notes)
    np.testing.assert_array_equal(run.finish()["b"], expected)


def test_tests_are_run() -> None:
    text = stencilc.compile(TESTED, name="tested.stn")
    report = text.test()
    assert [own.title for own in report.passed] == ["a linear field has no Laplacian", "of i^4 24 is left"]
    assert report.passed[0].of == "laplap" and report.passed[0].line == 5
    assert str(report).splitlines()[-1] == "in all: 2 passed" and report.data["totals"] == {"passed": 2, "failed": 0}
    assert len(text.test(filter="linear").passed) == 1 == len(text.stencil.using(precision="f32").test(filter="i^4").passed)
    assert text.using(precision="f32").test().data["tests"][0]["precision"] == "f32"
    heat = stencilc.load("heat")
    own = heat.programs["heat_walls"].test().passed
    assert own and {test.of for test in own} == {"heat_walls"} and len(heat.test().passed) > len(own)


def test_a_test_that_fails_is_an_error(capfd: Any) -> None:
    text = stencilc.compile(TESTED.replace("24\n}", "25\n}"), name="tested.stn")
    with pytest.raises(stencilc.Error) as error:
        text.test()
    shown = told(error)
    assert shown.splitlines()[-1] == "1 of 2 tests failed" and "of i^4 24 is left" in shown and "tested.stn:11:5" in shown
    (found,) = error.value.diagnostics
    assert error.value.fault == "check" and (found.line, found.severity) == (11, "error")
    assert "3 of 3" not in found.message and "not as expected" in found.message
    assert pickle.loads(pickle.dumps(error.value)).diagnostics == [found]
    assert capfd.readouterr() == ("", "")


def test_tests_run_over_meshes(tmp_path: pathlib.Path) -> None:
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    mean = stencilc.compile(OVER).stencils["mean"]
    assert [own.of for own in mean.test(stencilc.mesh(tmp_path / "airfoil.npz")).passed] == ["mean"]
    with pytest.raises(stencilc.Error) as error:
        mean.test()
    assert "names no mesh" in told(error)


def test_wrong_calls_are_told(laplap: stencilc.Text, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("STENCILC_TUNED", str(tmp_path))
    airfoil = stencilc.load("airfoil")
    wave = stencilc.compile(WAVE).programs["wave"]
    for call, words in [
        (lambda: laplap.verify(colour="red"), "colour"),
        (lambda: laplap.verify((1, 2)), "grid"),
        (lambda: laplap.verify((3,)), "(3,) is not the shape of a grid"),
        (lambda: laplap.verify("grid.npz"), "a str is no grid and no mesh"),
        (lambda: laplap.verify(7), "a int is no grid and no mesh"),
        (lambda: laplap.verify((3, 9, 11), device="abacus"), "abacus"),
        (lambda: laplap.verify((3, 9, 11), access="tiles"), "tiles"),
        (lambda: laplap.verify((3, 9, 11), fuse="merged"), "`fuse` is for programs"),
        (lambda: laplap.verify((3, 9, 11), dt=0.5), "dt"),
        (lambda: stencilc.compile(MIX).verify((3, 9, 11), device="cpu", dt="fast"), "dt"),
        (lambda: airfoil.stencils["res_calc"].verify(), "a mesh, `stencilc.mesh(path)`, first"),
        (lambda: wave.using(gpus=2).verify((3, 9, 11)), "`gpus` is for what is started"),
        (lambda: wave.using(gpus=2).tune((3, 9, 11)), "`gpus` is for what is started"),
        (lambda: laplap.using(untuned="no"), "no is no value for `untuned`"),
        (lambda: laplap.tune((3, 9, 11), device="cpu"), "there is nothing to tune on the cpu"),
        (lambda: laplap.tune((3, 9, 11), budget=-1), "budget"),
        (lambda: laplap.tune((3, 9, 11), budget="long"), "budget"),
        (lambda: laplap.test(), "there is no test in `laplap.stn`"),
        (lambda: laplap.stencil.test(), "there is no test of `laplap` in `laplap.stn`"),
        (lambda: stencilc.compile(TESTED).test(filter="quadratic"), "no test has `quadratic` in its title"),
        (lambda: stencilc.compile(TESTED).test(precision="f16"), "f16"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error), words

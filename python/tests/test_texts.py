"""Texts: what they declare, what is wrong with them, and what there is to say of them."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import stencilc
from conftest import LAPLAP, MIX, WAVE, told


def test_what_is_declared_is_data() -> None:
    mix = stencilc.compile(MIX, name="mix.stn")
    assert list(mix.fields) == ["a", "c", "s", "u", "b", "flat"]
    assert mix.fields["c"] == stencilc.Field("c", "in", ("k",), "real", "", None)
    assert mix.fields["flat"].axes == ("j", "i") and mix.fields["u"].role == "inout"
    assert mix.params == {"dt": stencilc.Param("dt", "real", None, "")}
    hdiff = stencilc.load("hdiff")
    assert hdiff.fields["coeff"].range == (0, 1 / 32) and "stable" in hdiff.fields["coeff"].doc
    assert hdiff.name == "hdiff" and "COSMO" in hdiff.stencil.doc and "stencil hdiff" in hdiff.text
    heat = stencilc.load("heat")
    periodic = heat.programs["heat_periodic"]
    assert periodic.params["steps"].default == 100 and periodic.params["kappa"].default == 1.11e-4
    assert list(heat.programs) == ["heat_periodic", "heat_walls", "heat_insulated", "heat_rim"]
    assert repr(hdiff.stencil) == "<stencilc stencil hdiff: in phi, in coeff, out res>"
    assert "laplap" in stencilc.stencils() and stencilc.device() in ("cpu", "cuda:0")


def test_a_wrong_text_is_told_with_its_places() -> None:
    with pytest.raises(stencilc.Error) as error:
        stencilc.compile("stencil a {\n    in height\n    out y\n    y = heigth + 1\n}\n", name="slope.stn")
    text = told(error)
    assert "unknown name `heigth`" in text and "slope.stn:4:9" in text and "did you mean `height`?" in text
    assert "━" in text and error.value.fault == "input"
    (found,) = error.value.diagnostics
    assert found == stencilc.Diagnostic(
        "error", "slope.stn", 4, 9, "unknown name `heigth`", "did you mean `height`?", found.help
    )
    again = pickle.loads(pickle.dumps(error.value))
    assert str(again) == text and again.diagnostics == [found]


def test_warnings_are_data() -> None:
    text = stencilc.compile("stencil a { in x; out y; let z = x; y = x }")
    assert [own.message for own in text.warnings] == ["the value `z` is never used"]
    assert text.warnings[0].severity == "warning"


def test_files_are_found_and_import(tmp_path: pathlib.Path) -> None:
    (tmp_path / "library.stn").write_text("fn twice(a) = 2*a\n")
    (tmp_path / "own.stn").write_text('import "library.stn"\nstencil s { in a; out b; b = twice(a) }\n')
    own = stencilc.load(tmp_path / "own.stn")
    assert own(a=np.ones((2, 2)))[0, 0] == 2
    (tmp_path / "library.stn").write_text("fn twice(a) = 2*b\n")
    with pytest.raises(stencilc.Error) as error:
        stencilc.load(tmp_path / "own.stn")
    assert error.value.diagnostics[0].file.endswith("library.stn") and error.value.diagnostics[0].line == 1


WRONG: "dict[str, Any]" = {
    "no file": (lambda p: stencilc.load(p / "ona.stn"), "there is no file"),
    "no built-in": (lambda p: stencilc.load("laplop"), "did you mean `laplap`?"),
    "a folder": (lambda p: stencilc.load(p), "is a directory"),
    "numbers": (lambda p: stencilc.load(p / "a.npy"), "is a file of numbers"),
    "a path as a text": (lambda p: stencilc.compile(p), "a text is needed, not PosixPath"),
    "an empty text": (lambda p: stencilc.compile("").bind(), "has no stencil"),
    "several": (lambda p: stencilc.compile(LAPLAP + MIX).bind(), 'choose one: `.stencils["laplap"]`'),
    "another stencil": (lambda p: stencilc.compile(LAPLAP).stencils["laplab"], "did you mean `laplap`?"),
    "another program": (lambda p: stencilc.compile(WAVE).programs["wav"], "did you mean `wave`?"),
    "no program": (lambda p: stencilc.compile(LAPLAP).programs["wave"], "it has none"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told(what: str, tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    call, expected = WRONG[what]
    with pytest.raises(stencilc.Error) as error:
        call(tmp_path)
    # What a file of numbers is good for is told in words of the command line.
    assert expected in (str(error.value) if what == "numbers" else told(error))


def test_explanations_and_cuda_are_texts() -> None:
    laplap = stencilc.load("laplap")
    text = laplap.explain(grid=(64, 48, 32))
    assert "on a grid of 32x48x64" in text and "reads, from the cell" in text
    assert laplap.explain(np.zeros((64, 48, 32))) == text
    assert "in f32" in laplap.using(precision="f32").explain(gpu="h100")
    assert "__global__" in laplap.cuda and "float" in laplap.using(precision="f32").cuda
    mix = stencilc.compile(MIX)
    assert "dt" in mix.explain(dt=0.25)
    wave = stencilc.compile(WAVE).programs["wave"].explain(grid=(4, 64, 64))
    assert "wave" in wave
    airfoil = stencilc.load("airfoil")
    assert "over" in airfoil.stencils["res_calc"].explain()
    for call in (
        lambda: laplap.explain(gpu="abacus"),
        lambda: laplap.explain(colour="red"),
        lambda: laplap.explain(grid=(1, 2, 2)),
        lambda: airfoil.stencils["res_calc"].cuda,
    ):
        with pytest.raises(stencilc.Error) as error:
            call()
        told(error)

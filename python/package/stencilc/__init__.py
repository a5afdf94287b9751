"""Stencils on grids and meshes: compiled for GPUs, or computed on the CPU, to the same bits.

    laplap = stencilc.load("laplap")
    res = laplap(phi=phi)               # arrays of NumPy, CuPy, torch, jax or xarray, where they are
    step = laplap.bind(phi=phi, res=res)
    step()
"""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any, List, Mapping, Union

from . import _core
from ._core import Bound, Cells, Mesh, __version__
from ._errors import Diagnostic, Error
from ._programs import Picture, Program, Run
from ._reports import Fastest, Report, Tested, Testing, Tuning, Verification
from ._stencils import Stencil
from ._subjects import Field, Param
from ._texts import Text

__all__ = [
    "Bound",
    "Cells",
    "Diagnostic",
    "Error",
    "Fastest",
    "Field",
    "Mesh",
    "Param",
    "Picture",
    "Program",
    "Report",
    "Run",
    "Stencil",
    "Tested",
    "Testing",
    "Text",
    "Tuning",
    "Verification",
    "__version__",
    "cells",
    "compile",
    "device",
    "load",
    "mesh",
    "stencils",
]

_Path = Union[str, "os.PathLike[str]"]


def load(file: _Path) -> Text:
    """Reads the text of a file: a path, or the name of a stencil that comes along, as "hdiff"."""
    return Text(_core.open(os.fspath(file)))


def compile(text: str, *, name: str = "<text>") -> Text:
    """Reads a text; messages call it by the name."""
    if not isinstance(text, str):
        raise Error(f"a text is needed, not {type(text).__name__}", "`stencilc.load(path)` reads a file")
    return Text(_core.in_memory(text, name))


def mesh(source: Union[_Path, Mapping[str, Any]]) -> Mesh:
    """A mesh: of a file, .npz, Gmsh's .msh, or OP2's .dat; or of arrays, whose names say what they are: "edge.cells -> cell" for a map,
    "area on cell" for a field, "set cell" for a number of elements."""
    if isinstance(source, Mapping):
        return _core.make_mesh(dict(source))
    return _core.read_mesh(os.fspath(source))


def cells(file: _Path) -> Cells:
    """Reads the file of a grid whose cells stand in no rows, as `stencilc grid make` writes it."""
    return _core.read_cells(os.fspath(file))


def stencils() -> List[str]:
    """The names of the stencils that come along."""
    return _core.along()


def device() -> str:
    """What programs run on if nothing is said: the first GPU, or else "cpu"."""
    return _core.device()[0]


def _look_for(library: str) -> None:
    """A library of NVIDIA's, if this environment has it as a package."""
    for folder in sys.path:
        for own in sorted(pathlib.Path(folder or ".").glob("nvidia/*/lib/" + library), reverse=True):
            _core.look_in(str(own.parent))
            return


# The compiler, of `pip install stencilc[cuda]`, and what GPUs of several processes send by.
_look_for("libnvrtc.so.*")
_look_for("libnccl.so.2")

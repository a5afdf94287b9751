"""What mypy is shown: that the package's types are those that its users need. Nothing here is run."""

from __future__ import annotations

import pathlib
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import stencilc

text: stencilc.Text = stencilc.load("hdiff")
text = stencilc.load(pathlib.Path("own.stn"))
text = stencilc.compile("stencil copy { in a; out b; b = a }", name="copy.stn")
stencil: stencilc.Stencil = text.stencils["hdiff"].using(device="native", access="tile", tile=(2, 4))
fields: Dict[str, stencilc.Field] = stencil.fields
axes: Tuple[str, ...] = fields["phi"].axes
result: Any = stencil(phi=np.zeros((2, 8, 8)), alpha=0.5)
step: stencilc.Bound = stencil.bind(phi=np.zeros((2, 8, 8)))
result = step(stream=7)
told: str = stencil.explain(grid=(2, 8, 8)) + stencil.cuda
run: stencilc.Run = text.programs["heat"].start((2, 8, 8), t=np.zeros((2, 8, 8)), steps=3)
for now in run.every(10):
    result = now["t"]
count: int = run.step(3)
run.save(pathlib.Path("way.npz"))
picture: stencilc.Picture = run.plot("t", pathlib.Path("t.png"), level=1)
png: bytes = picture.png
notes: List[str] = run.notes + step.notes
report: stencilc.Verification = stencil.verify((2, 8, 8), device="emulate", access=["idxvar", "tile"])
equal: int = stencil.using(gpus=1).verify(np.zeros((2, 8, 8))).equal + text.verify(stencilc.mesh("airfoil.npz")).equal
tuned: List[stencilc.Fastest] = stencil.tune(stencilc.cells("quad.npz"), budget=0.5).fastest
kept: Optional[str] = tuned[0].kept
passed: List[stencilc.Tested] = text.test(filter="linear").passed + text.programs["heat"].test().passed
told += str(report) + report.notes[0] + report.warnings[0].message
operator: Any = stencil.torch
result = stencil.jax(np.zeros((2, 8, 8)), np.zeros((2, 8, 8)))
sets: Dict[str, int] = stencilc.mesh("airfoil.npz").sets
try:
    pass
except stencilc.Error as error:
    diagnostics: List[stencilc.Diagnostic] = error.diagnostics
    line: int = diagnostics[0].line

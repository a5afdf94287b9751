"""`docs/python.md`, `docs/from_gt4py.md` and what README.md shows of Python: their blocks are executed, one after the other, and print what stands there."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
from typing import Any, Dict, Iterator, List, Tuple

import pytest
import stencilc

ROOT = pathlib.Path(__file__).resolve().parents[2]

Block = Tuple[int, List[str], str]


def blocks(path: pathlib.Path) -> Iterator[Block]:
    """The line where a block begins, the words behind its first mark, and what is in it."""
    words, begun = None, 0
    lines: List[str] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif words is None:
            words, begun, lines = line[3:].split(), number, []
        else:
            yield begun, words, "\n".join(lines) + "\n"
            words = None


@pytest.mark.parametrize("document", ["docs/python.md", "docs/from_gt4py.md", "README.md"])
def test_a_document_does_what_it_says(document: str, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "smooth.stn").write_text(next(text for _, words, text in blocks(ROOT / "README.md") if words[:1] == ["stencil"]).replace("heigth", "height"))
    names: Dict[str, Any] = {"__name__": "__main__"}
    printed, executed = None, 0
    for line, words, text in blocks(ROOT / document):
        if words[:1] == ["text"] and printed is not None:
            assert printed == text, f"{document}:{line}\n{printed}"
        printed = None
        if words[:1] != ["python"]:
            continue
        code = compile(text, f"{document}:{line}", "exec")
        if "gpu" in words and stencilc._core.gpus() == 0:
            continue
        if any(name in words and importlib.util.find_spec(name) is None for name in ("torch", "jax")):
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        printed, executed = out.getvalue(), executed + 1
    assert executed >= {"docs/python.md": 10, "docs/from_gt4py.md": 8}.get(document, 1)

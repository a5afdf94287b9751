"""What comes of verifying, tuning and testing: what the command line prints, to be read and as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type, TypeVar

if TYPE_CHECKING:
    from ._core import Came

from ._errors import Diagnostic, Error, in_python


@dataclass(frozen=True, repr=False)
class Report:
    """What came of it. `print` shows what the command line prints."""

    #: to be read
    text: str
    #: all of it, as `--json` of the command line prints it
    data: Mapping[str, Any]
    #: what there is to note
    notes: Tuple[str, ...]
    #: what there is to tell of places in the text, though nothing is wrong
    warnings: Tuple[Diagnostic, ...]

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def __repr__(self) -> str:
        lines = self.text.splitlines() or [""]
        return f"<stencilc {type(self).__name__.lower()}: {lines[-1]}>"


@dataclass(frozen=True, repr=False)
class Verification(Report):
    """Every way to compute something, compared with the interpreter bit for bit. If one differs, there is an error instead."""

    @property
    def device(self) -> str:
        """What the kernels ran on."""
        return str(self.data["device"])

    @property
    def totals(self) -> Dict[str, int]:
        """How many ways came to what: "equal", "refused" and others."""
        return dict(self.data["totals"])

    @property
    def equal(self) -> int:
        """How many ways left the interpreter's bits."""
        return self.totals["equal"]


class Fastest(NamedTuple):
    """The fastest way to compute something on a grid or a mesh."""

    #: the options of the command line that choose it
    options: str
    #: microseconds: the median of a launch, or of a step of a program; None where nothing was measured
    us: Optional[float]
    #: the grid, as (nk, nj, ni); of cells and meshes, the name
    grid: str
    precision: str
    #: how many ways were measured, and how many there are
    tried: int
    among: int
    #: the file that remembers it, if it is remembered
    kept: Optional[str]


@dataclass(frozen=True, repr=False)
class Tuning(Report):
    """What was found to be the fastest, and is taken from now on where nothing else is chosen."""

    @property
    def fastest(self) -> List[Fastest]:
        """The fastest way on each grid in each precision."""
        if "cases" not in self.data:
            return [self._over_mesh()]
        return [self._on_grid(own) for own in self.data["cases"]]

    def _on_grid(self, own: Mapping[str, Any]) -> Fastest:
        first = own["fastest"][0]
        if "program" in own:
            options, us = first["plan"], first["us_a_step"]["median_us"]
            return Fastest(options, us, own["grid"], own["precision"], own["tried"], own["among"], own["kept"])
        of, options = own["subject"], first["kernel"]["options"]
        return Fastest(
            options, first["outcome"]["median_us"], of["grid"], of["precision"], own["tried"], own["among"], own["kept"]
        )

    def _over_mesh(self) -> Fastest:
        own = self.data
        first = own["rows"][0]
        measured = first["measured"]
        us = None if measured is None else measured["median_us"]
        return Fastest(
            own["fastest"], us, "", own["precision"], own["tried"], own["tried"] + own["left"] + own["hopeless"], own["kept"]
        )


class Tested(NamedTuple):
    """A test that passes."""

    title: str
    #: the stencil or program that it is of
    of: str
    #: where it stands in the text, from 1
    line: int


@dataclass(frozen=True, repr=False)
class Testing(Report):
    """Tests that pass. If one does not, there is an error instead."""

    @property
    def passed(self) -> List[Tested]:
        """The tests, in the order of the text."""
        return [Tested(own["title"], own["stencil"], own["line"]) for own in self.data["tests"]]


Kind = TypeVar("Kind", bound=Report)


def reported(kind: Type[Kind], came: Came) -> Kind:
    """What came of it; or why it failed, as an error, in which all stands that there is to read."""
    told = tuple(Diagnostic(*own[:6], tuple(own[6])) for own in came["diagnostics"])
    if came["failure"] is not None:
        fault, message, help = came["failure"]
        shown = came["rendered"] + (came["text"] if fault == "check" and not told else "")
        mended = None if help is None else in_python(help)
        raise Error(f"{shown}{in_python(message)}", mended, fault, told)
    notes = tuple(in_python(own) for own in came["notes"])
    return kind(came["text"], json.loads(came["data"]), notes, told)

"""Programs, and those that run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Union

import numpy as np

from . import _core
from ._arrays import Kind, Labels, is_labelled, kind_of
from ._errors import Error, noted
from ._subjects import Subject

Path = Union[str, "os.PathLike[str]"]


class Program(Subject):
    """A program. It holds its fields itself, where it computes: `start` brings them there, and a run hands them out."""

    def start(self, place: Any = None, /, **given: Any) -> "Run":
        """Checks all, compiles what is needed, and copies the fields to the device: the first GPU, or else the CPU.

        `place` is where it runs, if that does not follow from the arrays: a shape (nk, nj, ni), or what `stencilc.mesh` or
        `stencilc.cells` reads. Arrays and parameters are given by their names.
        """
        return self._started(place, given, None)

    def resume(self, path: Path, place: Any = None, /, **params: Any) -> "Run":
        """Goes on from what `Run.save` kept, on any device. Fields are in the file; parameters are given again."""
        return self._started(place, params, os.fspath(path))

    def _started(self, place: Any, given: Mapping[str, Any], path: Optional[str]) -> "Run":
        plain, labels, kind, arrays = self._plain(given)
        for name, value in plain.items():
            if name not in self.fields:
                continue
            if isinstance(value, tuple):
                value = value[0]
            if any(hasattr(value, own) for own in ("__array_interface__", "__cuda_array_interface__", "__dlpack__")):
                plain[name] = kind_of([value]).to_host(value)
        core = _core.start(self._core, self._placed(place), plain, self._how, path)
        return Run(self, core, labels, kind, arrays[0] if arrays else None)


class Run:
    """A program under way. `run[name]` is a copy of what a field holds now, and `run[name] = array` gives it other numbers.

    Any thread may use it; what several ask for is done one after the other.
    """

    def __init__(self, program: Program, core: _core.Run, labels: Labels, kind: Kind, like: Any) -> None:
        self.program = program
        self._core = core
        self._labels = labels
        self._kind = kind
        self._like = like

    @property
    def device(self) -> str:
        """What computes: "cpu", "cuda:0"."""
        return self._core.device

    @property
    def notes(self) -> List[str]:
        """What there is to note, such as that the way that was tuned is taken."""
        return [noted(own) for own in self._core.notes]

    @property
    def rank(self) -> int:
        """Which of the processes that compute it together this one is, from 0."""
        return self._core.rank

    @property
    def ranks(self) -> int:
        """How many processes compute it together: 1 but with `using(processes=True)`."""
        return self._core.ranks

    @property
    def outputs(self) -> List[str]:
        """The names of the fields and numbers that are written."""
        return self._core.outputs

    @property
    def done(self) -> int:
        """How many steps were done, which are turns of the outermost loops."""
        return self._core.done()

    @property
    def total(self) -> int:
        """How many steps there are in all, as far as that is known."""
        return self._core.total()

    def step(self, n: int = 1) -> int:
        """Goes on by `n` steps, or fewer at the end, and returns how many there were."""
        return self._core.step(_count(n, "step", 0))

    def finish(self) -> "Run":
        """Goes on to the end."""
        while self._core.step(1 << 62):
            pass
        self._core.wait()
        return self

    def every(self, n: int) -> Iterator["Run"]:
        """Goes on by `n` steps at a time, and hands itself out after each, until the end."""
        count = _count(n, "every", 1)
        return self._each(count)

    def _each(self, count: int) -> Iterator["Run"]:
        while self._core.step(count):
            yield self

    def wait(self) -> None:
        """Waits until all that was started is done, which `step` does not do on a GPU."""
        self._core.wait()

    def __getitem__(self, name: str) -> Any:
        array = np.asarray(self._core.get(name))
        if array.ndim == 0:
            return array[()].item()
        if self._like is not None:
            array = self._kind.of_host(array, self._like)
        field = self.program.fields.get(name)
        return array if field is None else self._labels.given(name, array, field.axes)

    def __setitem__(self, name: str, array: Any) -> None:
        field = self.program.fields.get(name)
        if field is not None and is_labelled(array):
            array = self.program._labels().taken(name, array, field.axes)
        if any(hasattr(array, own) for own in ("__array_interface__", "__cuda_array_interface__", "__dlpack__")):
            array = kind_of([array]).to_host(array)
        self._core.put(name, array)

    def plot(self, name: str, path: Optional[Path] = None, *, level: Optional[int] = None) -> "Picture":
        """A picture of a level of what a field holds now, the middle one if none is named. It is written to a file, `run.plot("t", "t.png")`,
        and shown by notebooks. Over a mesh, "q.1" is a part of a vector.
        """
        if level is not None:
            level = _number(level, "`level` is a number", 0)
        if path is not None and not os.fspath(path).endswith(".png"):
            raise Error(f"a picture is written to a file whose name ends in .png, not to `{os.fspath(path)}`")
        return Picture(name, self._core.plot(name, level, None if path is None else os.fspath(path)))

    def save(self, path: Path) -> None:
        """Keeps all that it holds in a file, from which `Program.resume` goes on."""
        self._core.save(os.fspath(path))

    def __repr__(self) -> str:
        return f"<stencilc run of {self.program.name} on {self.device}, {self.done} steps done>"


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture of what a field held."""

    #: the field
    name: str
    #: the bytes of a PNG file
    png: bytes

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"<stencilc picture of {self.name}: {len(self.png)} bytes>"


def _count(n: Any, what: str, least: int) -> int:
    return _number(n, f"`{what}` takes a number of steps", least)


def _number(n: Any, what: str, least: int) -> int:
    try:
        count = int(n.__index__())
    except AttributeError:
        raise Error(f"{what}, not {n!r}", "give a whole number") from None
    if count < least:
        raise Error(f"{what} from {least} on, not {count}")
    return count

"""Stencils and programs: what they declare, and how they are called and started."""

from __future__ import annotations

import os
from collections import namedtuple
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from . import _core
from ._arrays import Kind, Labels, is_labelled, kind_of
from ._errors import Diagnostic, Error

Path = Union[str, "os.PathLike[str]"]
Self = TypeVar("Self", bound="Subject")
Item = TypeVar("Item")


class Field(NamedTuple):
    """What is declared of a field."""

    name: str
    #: "in", "out" or "inout"; "inc" and "reduce" over meshes
    role: str
    #: the axes of its arrays, slowest first: ("k", "j", "i"); over a mesh the set, slots of a map, parts of a vector
    axes: Tuple[str, ...]
    #: "real" (which the arrays decide), "f64", "f32", "int" or "bool"
    dtype: str
    doc: str
    #: from where to where numbers are drawn, if they are
    range: Optional[Tuple[float, float]]


class Param(NamedTuple):
    """What is declared of a parameter."""

    name: str
    #: "real", "int" or "bool"
    kind: str
    #: its value if none is given; None of one that has to be given
    default: Union[float, int, bool, None]
    doc: str


class Subject:
    """What is common to stencils and programs."""

    def __init__(self, core: _core.Subject, options: Mapping[str, Any]) -> None:
        self._core = core
        self._options = dict(options)
        own = {name: value for name, value in options.items() if name != "dims"}
        self._how = _core.How(own)
        #: fields by name, in the order declared
        self.fields: Dict[str, Field] = {
            name: Field(name, role, tuple(axes), dtype, doc, span)
            for name, role, axes, dtype, doc, span in core.fields()
        }
        #: parameters by name
        self.params: Dict[str, Param] = {own[0]: Param(*own) for own in core.params()}

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def doc(self) -> str:
        """Its documentation."""
        return self._core.doc

    @property
    def over(self) -> Optional[str]:
        """The mesh that it runs over, as its text calls it; None of what runs on a grid."""
        return self._core.over

    def using(self: Self, **options: Any) -> Self:
        """The same, computed in another way.

        `device` is "cpu" (the interpreter), "native" or "emulate" (kernels on the CPU, compiled by a C++ compiler), "cuda" or
        "cuda:1"; `precision` "f32" or "f64", where no array decides it; `dims` says what a DataArray's dimensions are called, as
        `dict(i="lon", j="lat", k="level")`. `levels`, `draw`, `seed` and `cast` are for what is started. All others choose the kernel,
        as the options of `stencilc run` do: `using(access="tile", tile=(2, 4), block=(128, 2, 1))`.
        """
        return type(self)(self._core, {**self._options, **options})

    def explain(self, grid: Optional[Sequence[int]] = None, **options: Any) -> str:
        """What it reads, computes and costs, as `stencilc explain` says it: on a grid of this shape, (nk, nj, ni).

        Parameters may be given; other options are those of the command line: `gpu`, `registers`, `mesh`, `levels`.
        """
        words: List[str] = []
        if grid is not None:
            shape = tuple(int(own) for own in getattr(grid, "shape", grid))
            if len(shape) not in (2, 3):
                raise Error(f"{shape} is not the shape of a grid", "give that of its arrays: (nk, nj, ni)")
            words += ["--grid", "x".join(str(own) for own in reversed(shape))]
        if self._how.precision is not None:
            words += ["--precision", self._how.precision]
        for name, value in options.items():
            option = "--" + name.replace("_", "-")
            if name in self.params:
                words += ["--set", f"{name}={_text(value)}"]
            elif isinstance(value, bool):
                words += [option] * value
            else:
                words += [option, str(value)]
        return self._core.explain(words)

    def _labels(self) -> Labels:
        return Labels(self._options.get("dims", {}))

    def _plain(self, given: Mapping[str, Any]) -> Tuple[Dict[str, Any], Labels, Kind, List[Any]]:
        """Arrays without labels, those labels, and whose the arrays are."""
        labels = self._labels()
        plain: Dict[str, Any] = {}
        arrays: List[Any] = []
        for name, value in given.items():
            field = self.fields.get(name)
            if field is None:
                plain[name] = value
                continue
            own = [
                labels.taken(name, one, field.axes) if is_labelled(one) else one
                for one in (value if isinstance(value, tuple) else (value,))
            ]
            arrays += [one for one in own if one is not None]
            written = own[1:] if len(own) == 2 else own if field.role == "out" else []
            for one in written:
                if one is not None and kind_of([one]).is_immutable:
                    raise Error(
                        f"`{name}` is written, and its {type(one).__name__} is never changed: it is read-only",
                        "leave it out, and a new one is made",
                    )
            plain[name] = tuple(own) if isinstance(value, tuple) else own[0]
        kind = kind_of(arrays)
        if kind.is_immutable:
            for name, value in plain.items():
                if name in self.fields and self.fields[name].role == "inout" and not isinstance(value, tuple):
                    plain[name] = (value, None)
            for array in arrays:
                if hasattr(array, "block_until_ready"):
                    array.block_until_ready()
        return plain, labels, kind, arrays

    def __repr__(self) -> str:
        names = ", ".join(f"{own.role} {own.name}" for own in self.fields.values())
        return f"<stencilc {type(self).__name__.lower()} {self.name}: {names}>"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Stencil(Subject):
    """A stencil. Called with arrays by the names of its fields, and with parameters, it gives its outputs."""

    def __init__(self, core: _core.Subject, options: Mapping[str, Any]) -> None:
        super().__init__(core, options)
        written = [own.name for own in self.fields.values() if own.role != "in"]
        self._written = written
        # A name that a tuple cannot have is one by its place.
        self._tuple: Callable[..., Any] = namedtuple(f"{core.name}_outputs", written, rename=True)  # type: ignore[misc]

    @property
    def cuda(self) -> str:
        """The CUDA of its kernel, with its launcher."""
        return self._core.cuda(self._how)

    def __call__(self, place: Any = None, /, **given: Any) -> Any:
        """Computes it, and gives its output, or a named tuple of several.

        Arrays have the axes (k, j, i), of which i is the fastest. Outputs that are given are written in place, and nothing else of
        them than the cells that are computed; the others are new, and hold NaN (0, False) where nothing is computed. An `inout` field
        is changed in place; given two arrays, `u=(old, new)`, it is read from one and written to the other, and `(old, None)` makes a
        new one. On a GPU it is started in the current stream of the arrays' library, and not waited for.

        What runs over a mesh, or on cells that stand in no rows, is given that first: `div(mesh, a=a)`. Its inputs are copied.
        """
        if place is not None or self.over is not None:
            return self._elsewhere(place, given)
        lending, outputs, kind, _ = self._lend(given)
        device = lending.device
        stream = lending.stream or 0
        if device is not None:
            current = kind.stream(device)
            stream = current() if current is not None else stream
        lending.run(stream, kind.is_immutable)
        return outputs

    def bind(self, **given: Any) -> _core.Bound:
        """Checks all, and makes the kernel: what comes back computes at each call, in some microseconds on a GPU.

        Outputs that are not given are made once. The arrays are kept as long as it; whatever they hold at a call is what is computed
        from. `step(stream=s)` takes a stream of CuPy's or torch's, what has `__cuda_stream__`, or a handle.
        """
        if self.over is not None:
            raise Error(f"`{self.name}` runs over a mesh, and holds its arrays by itself", "start it: `start(mesh, ...)`")
        lending, outputs, kind, _ = self._lend(given)
        device = lending.device
        current = None if device is None else kind.stream(device)
        return lending.bind(outputs, current, kind.is_immutable)

    def start(self, place: Any = None, /, **given: Any) -> "Run":
        """The stencil as a program that calls it once; see `Program.start`."""
        return Program(self._core, self._options).start(place, **given)

    def _lend(self, given: Mapping[str, Any]) -> Tuple[_core.Lending, Any, Kind, Labels]:
        plain, labels, kind, _ = self._plain(given)
        lending = _core.lend(self._core, plain, self._how)
        made: Dict[str, Any] = {}
        for name, shape, dtype in lending.lacking():
            made[name] = kind.new(shape, dtype, lending.device)
            lending.write(name, made[name], True)
        outputs = []
        for name in self._written:
            if name in made:
                outputs.append(labels.given(name, made[name], self.fields[name].axes))
            else:
                value = given[name]
                outputs.append(value[1] if isinstance(value, tuple) else value)
        return lending, outputs[0] if len(outputs) == 1 else self._tuple(*outputs), kind, labels

    def _elsewhere(self, place: Any, given: Mapping[str, Any]) -> Any:
        outputs = [name for name in self._written if self.fields[name].role == "out" and given.get(name) is not None]
        if outputs:
            raise Error(
                f"`{outputs[0]}` is given, and what is not computed on rows gives new arrays alone", "leave it out"
            )
        run = Program(self._core, self._options).start(place, **given)
        run.finish()
        values = [run[name] for name in self._written]
        return values[0] if len(values) == 1 else self._tuple(*values)


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
        core = _core.start(self._core, place, plain, self._how, path)
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

    def save(self, path: Path) -> None:
        """Keeps all that it holds in a file, from which `Program.resume` goes on."""
        self._core.save(os.fspath(path))

    def __repr__(self) -> str:
        return f"<stencilc run of {self.program.name} on {self.device}, {self.done} steps done>"


def _count(n: Any, what: str, least: int) -> int:
    try:
        count = int(n.__index__())
    except AttributeError:
        raise Error(f"`{what}` takes a number of steps, not {n!r}", "give a whole number") from None
    if count < least:
        raise Error(f"`{what}` takes a number of steps from {least} on, not {count}")
    return count


class ByName(Mapping[str, Item]):
    """Stencils or programs by their names."""

    def __init__(self, what: str, items: Mapping[str, Item]) -> None:
        self._what = what
        self._items = dict(items)

    def __getitem__(self, name: str) -> Item:
        if name in self._items:
            return self._items[name]
        from difflib import get_close_matches

        near = get_close_matches(str(name), self._items, 1)
        have = ", ".join(self._items) or "none"
        raise Error(
            f"the text has no {self._what} `{name}`", f"did you mean `{near[0]}`?" if near else f"it has {have}"
        )

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{{{', '.join(self._items)}}}"


class Text:
    """A text that was read. With one stencil, it can be used as that stencil."""

    def __init__(self, core: _core.Text) -> None:
        self._core = core
        #: its stencils by name
        self.stencils: ByName[Stencil] = ByName("stencil", {own.name: Stencil(own, {}) for own in core.stencils()})
        #: its programs by name
        self.programs: ByName[Program] = ByName("program", {own.name: Program(own, {}) for own in core.programs()})

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._core.name

    @property
    def text(self) -> str:
        """The text, with all that it imports."""
        return self._core.text

    @property
    def warnings(self) -> List[Diagnostic]:
        """What there is to tell of it, though nothing is wrong."""
        return [Diagnostic(*own[:6], tuple(own[6])) for own in self._core.warnings]

    @property
    def stencil(self) -> Stencil:
        """The only stencil that it has."""
        if len(self.stencils) == 1:
            return next(iter(self.stencils.values()))
        if not self.stencils:
            raise Error(f"`{self.name}` has no stencil", "what it has is there for texts that import it")
        names = list(self.stencils)
        raise Error(
            f"`{self.name}` has {len(names)} stencils: {', '.join(names)}", f'choose one: `.stencils["{names[0]}"]`'
        )

    def __call__(self, place: Any = None, /, **given: Any) -> Any:
        """See `Stencil.__call__`."""
        return self.stencil(place, **given)

    def bind(self, **given: Any) -> _core.Bound:
        """See `Stencil.bind`."""
        return self.stencil.bind(**given)

    def using(self, **options: Any) -> Stencil:
        """See `Stencil.using`."""
        return self.stencil.using(**options)

    def explain(self, grid: Optional[Sequence[int]] = None, **options: Any) -> str:
        """See `Stencil.explain`."""
        return self.stencil.explain(grid, **options)

    @property
    def fields(self) -> Dict[str, Field]:
        """The fields of its only stencil."""
        return self.stencil.fields

    @property
    def params(self) -> Dict[str, Param]:
        """The parameters of its only stencil."""
        return self.stencil.params

    @property
    def cuda(self) -> str:
        """The CUDA of its only stencil."""
        return self.stencil.cuda

    def __repr__(self) -> str:
        return f"<stencilc text {self.name}: stencils {self.stencils!r}, programs {self.programs!r}>"

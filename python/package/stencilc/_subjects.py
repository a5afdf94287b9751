"""Stencils and programs: what they declare, and how they are called and started."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from . import _core
from ._arrays import Kind, Labels, is_labelled, kind_of
from ._errors import Error

Self = TypeVar("Self", bound="Subject")


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

    def _placed(self, place: Any) -> Any:
        """Where something is computed; arrays have names."""
        if is_labelled(place) or hasattr(place, "__array_interface__") or hasattr(place, "__dlpack__"):
            first = next(iter(self.fields), "a")
            raise Error("an array is given without a name", f"arrays are given by the names of fields: {first}=...")
        return place

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

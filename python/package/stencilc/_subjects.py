"""Stencils and programs: what they declare, and how they are called and started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

if TYPE_CHECKING:
    from numpy.typing import NDArray

from . import _core
from ._arrays import Kind, Labels, is_labelled, kind_of
from ._errors import Error
from ._reports import Testing, Tuning, Verification, reported

#: Where something is computed: the shape of its arrays, (nk, nj, ni), or an array that has it; or what `stencilc.mesh` or
#: `stencilc.cells` reads.
Place = Union[Sequence[int], "NDArray[Any]", _core.Mesh, _core.Cells, None]

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
        `dict(i="lon", j="lat", k="level")`. `levels`, `draw`, `seed`, `cast`, `gpus` and `processes` are for what is started; `gpus` says on how many
        GPUs it runs, from that of `device` on, or in how many parts on the CPU, and with `processes=True` those that `mpirun` or `srun` has started
        compute it together: the bits are the same. What `tune` has found is taken, unless `untuned=True`. All others choose the kernel, as
        the options of `stencilc run` do: `using(access="tile", tile=(2, 4), block=(128, 2, 1))`.
        """
        return type(self)(self._core, {**self._options, **options})

    def explain(self, grid: Place = None, **options: Any) -> str:
        """What it reads, computes and costs, as `stencilc explain` says it: on a grid of this shape, (nk, nj, ni), or over a mesh.

        Parameters may be given; other options are those of the command line: `gpu`, `registers`, `levels`.
        """
        return self._core.explain(self._words(grid, {**self._used("precision"), **options}))

    def verify(self, grid: Place = None, **options: Any) -> Verification:
        """Compares every way to compute it with the interpreter, bit for bit, as `stencilc verify` does; if one differs, that is an error.

        It is done on a grid of this shape, (nk, nj, ni), on cells or over a mesh; where nothing is said, on some that suit most stencils.
        What `using` has chosen is all that is compared. Parameters may be given; other options are those of the command line:
        `access=["idxvar", "tile"]`, `storage`, `device`, `precision`, `seed`, `times`, `fuse`.
        """
        return reported(Verification, _core.verify(self._core, self._chosen(grid, options)))

    def tune(self, grid: Place = None, **options: Any) -> Tuning:
        """Finds the fastest way to compute it, as `stencilc tune` does, and remembers it: on such a grid or mesh it is taken from then on,
        where nothing else is chosen.

        It takes what `verify` takes; `budget` are the seconds of the search, and with `forget=True` nothing is remembered.
        """
        return reported(Tuning, _core.tune(self._core, self._chosen(grid, options)))

    def test(self, mesh: Place = None, **options: Any) -> Testing:
        """Runs the tests that stand in its text, as `stencilc test` does; if one fails, that is an error.

        `mesh` is for tests that name none; other options are those of the command line: `filter="linear"`, `precision="f32"`.
        """
        return reported(Testing, _core.test(self._core, self._words(mesh, {**self._used("precision"), **options})))

    def _used(self, *names: str) -> Dict[str, Any]:
        """Options of `using` that something else takes, too."""
        return {name: self._options[name] for name in names if name in self._options}

    def _chosen(self, place: Place, options: Mapping[str, Any]) -> List[str]:
        """Options of what is done with kernels, as the command line takes them, and those that `using` has chosen."""
        if self._options.get("processes"):
            raise Error("`processes` is for what is started", "leave it out: kernels are verified and tuned in one process")
        if self._options.get("gpus", 1) != 1:
            raise Error("`gpus` is for what is started", "leave it out: kernels are verified and tuned on one device")
        used = self._used("device", "precision", "levels", "seed")
        return self._words(place, {**used, **options}) + self._how.words

    def _words(self, place: Place, options: Mapping[str, Any]) -> List[str]:
        """Options as the command line takes them."""
        return worded(place, options, self.params)

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


def worded(place: Place, options: Mapping[str, Any], params: Mapping[str, Any]) -> List[str]:
    """Options as the command line takes them; those that are called as parameters are their values."""
    words: List[str] = []
    if isinstance(place, _core.Mesh):
        if place.path is None:
            raise Error("a mesh of arrays is in no file, from which it would be read", "keep it in one: `numpy.savez(path, **arrays)`")
        words.append(f"--mesh={place.path}")
    elif isinstance(place, _core.Cells):
        words.append(f"--grid={place.path}")
    elif place is not None:
        words += ["--grid", _extents(place)]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if name in params:
            words.append(f"--set={name}={_text(value)}")
        elif isinstance(value, bool):
            words += [option] * value
        elif isinstance(value, (tuple, list)):
            # Extents, or several to choose from.
            words.append(f"{option}={('x' if isinstance(value, tuple) else ',').join(str(own) for own in value)}")
        else:
            words.append(f"{option}={value}")
    return words


def _extents(grid: Any) -> str:
    try:
        shape = tuple(int(own) for own in getattr(grid, "shape", grid))
    except (TypeError, ValueError):
        raise Error(
            f"a {type(grid).__name__} is no grid and no mesh",
            "give the shape of its arrays, (nk, nj, ni), or what `stencilc.mesh` or `stencilc.cells` reads",
        ) from None
    if len(shape) not in (2, 3):
        raise Error(f"{shape} is not the shape of a grid", "give that of its arrays: (nk, nj, ni)")
    return "x".join(str(own) for own in reversed(shape))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Stencils as operators of torch's, which programs that `torch.compile` compiles call."""

from __future__ import annotations

import hashlib
import importlib
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

from ._errors import Error
from ._subjects import Field, Param

if TYPE_CHECKING:
    from ._stencils import Stencil

#: Operators by the names that torch knows them by, which it keeps as long as the process lives.
_MADE: Dict[str, Any] = {}

_KINDS = {"real": "float", "int": "int", "bool": "bool"}


def operator(stencil: "Stencil", chosen: Mapping[str, Any], text: str) -> Any:
    """The operator of a stencil with these options, made once."""
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        raise Error("torch is not installed", "`pip install torch`") from None
    if stencil.over is not None:
        raise Error(f"`{stencil.name}` runs over a mesh, and operators of torch's are stencils on grids")
    told = repr((text, stencil.name, sorted((name, repr(value)) for name, value in chosen.items())))
    # Whoever has the same name computes the same.
    name = f"stencilc::{stencil.name}_{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    if name not in _MADE:
        _MADE[name] = _made(torch, name, stencil)
    return _MADE[name]


def _made(torch: Any, name: str, stencil: "Stencil") -> Any:
    read = [own for own in stencil.fields.values() if own.role != "out"]
    if not read:
        raise Error(f"`{stencil.name}` reads no field: torch has no array that says where it is computed")
    written = [own for own in stencil.fields.values() if own.role != "in"]
    params = list(stencil.params.values())

    def computed(*given: Any, **numbers: Any) -> Any:
        arrays: Dict[str, Any] = {}
        for own, array in zip(read, given):
            # It has no derivative, which torch tells whoever asks for one. And operators change nothing that they are given.
            plain = array.detach()
            arrays[own.name] = (plain, None) if own.role == "inout" else plain
        found = stencil(**arrays, **numbers)
        return found if len(written) == 1 else tuple(found)

    def shaped(*given: Any, **numbers: Any) -> Any:
        found = _shapes(torch, read, given, written)
        return found[0] if len(written) == 1 else tuple(found)

    try:
        made = torch.library.custom_op(name, computed, mutates_args=(), schema=_schema(read, params, len(written)))
        made.register_fake(shaped)
    except (RuntimeError, ValueError, TypeError) as error:
        message = str(error).strip().splitlines()[0]
        raise Error(f"torch makes no operator of `{stencil.name}`: {message}") from None
    return made


def _schema(read: Sequence[Field], params: Sequence[Param], outputs: int) -> str:
    """The operator's signature, as torch writes it: arrays first, then parameters by their names."""
    arguments = [f"Tensor {own.name}" for own in read]
    if params:
        arguments.append("*")
    arguments += [
        f"{_KINDS[own.kind]} {own.name}" + ("" if own.default is None else f"={own.default!r}") for own in params
    ]
    result = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    return f"({', '.join(arguments)}) -> {result}"


def _shapes(torch: Any, read: Sequence[Field], given: Sequence[Any], written: Sequence[Field]) -> List[Any]:
    """Outputs of the right shapes and types, without numbers: what is known before anything is computed."""
    sizes: Dict[str, Any] = {"k": 1}
    for own, array in zip(read, given):
        axes = own.axes[-array.dim() :] if array.dim() else ()
        for axis, size in zip(axes, array.shape):
            sizes[axis.partition("+")[0]] = size - 1 if axis == "k+1" else size
    is_flat = all(array.dim() <= 2 for array in given)
    real = next((array.dtype for own, array in zip(read, given) if own.dtype == "real"), torch.float64)
    types = {"real": real, "f64": torch.float64, "f32": torch.float32, "int": torch.int32, "bool": torch.bool}

    def one(own: Field) -> Any:
        shape: Tuple[Any, ...] = tuple(sizes[axis[:-2]] + 1 if axis.endswith("+1") else sizes[axis] for axis in own.axes)
        if is_flat and len(shape) == 3 and shape[0] == 1:
            shape = shape[1:]
        return given[0].new_empty(shape, dtype=types[own.dtype])

    return [one(own) for own in written]

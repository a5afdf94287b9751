"""Stencils within programs that jax compiles: `jax.jit` calls them by XLA's interface for foreign functions."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

from . import _core
from ._arrays import NOTHING
from ._errors import Error

if TYPE_CHECKING:
    from ._stencils import Stencil

#: As which XLA knows what calls stencils.
_TARGET = "stencilc"

#: Names, shapes and types of arrays.
_Arrays = Tuple[Tuple[str, Tuple[int, ...], str], ...]


class JaxStencil:
    """A stencil as a function of jax's: `jax.jit`, `jax.vmap` and `jax.lax.scan` take it, on the CPU and on GPUs.

    It takes the fields that are read, in the order declared or by their names, and parameters by their names, which are numbers when the
    program is traced. It gives new arrays: one, or a tuple of several. They hold NaN (0, False) where nothing is computed.
    """

    def __init__(self, stencil: "Stencil", core: _core.Subject, how: _core.How) -> None:
        if stencil.over is not None:
            raise Error(f"`{stencil.name}` runs over a mesh, and what jax compiles calls stencils on grids")
        self._core = core
        self._how = how
        self._read = [own.name for own in stencil.fields.values() if own.role != "out"]
        self._params = list(stencil.params)
        if not self._read:
            raise Error(f"`{stencil.name}` reads no field: jax has no array that says how large its grid is")
        self.__name__ = stencil.name
        self.__doc__ = stencil.doc
        _registered()

    def __call__(self, *arrays: Any, **given: Any) -> Any:
        jax, numpy = sys.modules["jax"], sys.modules["jax.numpy"]
        if len(arrays) > len(self._read):
            fields = "1 field" if len(self._read) == 1 else f"{len(self._read)} fields"
            raise Error(
                f"`{self.__name__}` reads {fields}, and is given {len(arrays)} arrays",
                f"arrays are those of {', '.join(self._read)}, in this order; parameters are given by their names",
            )
        named: Dict[str, Any] = dict(zip(self._read, arrays))
        params: Dict[str, Any] = {}
        for name, value in given.items():
            if name in named:
                raise Error(f"`{name}` is given twice: by its place, and by its name")
            if name in self._read:
                named[name] = value
                continue
            if isinstance(value, jax.core.Tracer) and name in self._params:
                raise Error(
                    f"the parameter `{name}` is traced, and kernels are called with its number",
                    f'jax.jit(..., static_argnames="{name}") gives it as one; what changes as the program runs is a '
                    "field, `on (k)` if it is the same in all columns",
                )
            params[name] = value
        # In the order declared, so that what was compiled does not depend on that of the call.
        taken = {name: _taken(numpy, name, named[name]) for name in self._read if name in named}
        shapes = [(name, tuple(own.shape), str(own.dtype)) for name, own in taken.items()]
        key, outputs = _core.declare(self._core, shapes, params, self._how)
        made = _compiled(key, self.__name__, tuple((name, tuple(shape), dtype) for name, shape, dtype in outputs))
        found = made(*taken.values())
        return found[0] if len(outputs) == 1 else found

    def __repr__(self) -> str:
        return f"<stencilc stencil {self.__name__} for jax: {', '.join(self._read + self._params)}>"


def _taken(numpy: Any, name: str, value: Any) -> Any:
    try:
        return numpy.asarray(value)
    except (TypeError, ValueError) as error:
        message = str(error).strip().partition("\n")[0]
        raise Error(f"`{name}` is a field, and jax makes no array of what is given: {message}") from None


@functools.lru_cache(maxsize=None)
def _registered() -> None:
    """Tells XLA who calls stencils, once."""
    try:
        jax = importlib.import_module("jax")
        importlib.import_module("jax.numpy")
    except ModuleNotFoundError:
        raise Error("jax is not installed", "`pip install jax`") from None
    try:
        ffi = importlib.import_module("jax.ffi")
    except ModuleNotFoundError:
        raise Error(
            f"jax {jax.__version__} has no `jax.ffi`, by which programs that it compiles call stencils",
            "`pip install -U jax`: 0.5.0 or newer",
        ) from None
    for platform in ("cpu", "CUDA"):
        try:
            ffi.register_ffi_target(_TARGET, _core.capsule(platform), platform=platform)
        except Exception as error:
            message, _, help = str(error).partition("\n  help: ")
            raise Error(f"jax {jax.__version__} does not take what calls stencils: {message}", help or None) from error


@functools.lru_cache(maxsize=1024)
def _compiled(key: str, name: str, outputs: _Arrays) -> Callable[..., Any]:
    """The function that computes what was declared under a key."""
    jax, numpy = sys.modules["jax"], sys.modules["jax.numpy"]
    results = []
    for output, shape, dtype in outputs:
        results.append(jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)))
        if str(results[-1].dtype) != dtype:
            raise Error(
                f"`{output}` is an array of {dtype}, and jax makes none as it is set up",
                'jax.config.update("jax_enable_x64", True) lets it',
            )

    def computed(*arrays: Any) -> Any:
        # What is there where nothing is computed comes in, in the memory where the results go out.
        before = [numpy.full(own.shape, NOTHING[str(own.dtype)], own.dtype) for own in results]
        places = {len(arrays) + number: number for number in range(len(results))}
        call = jax.ffi.ffi_call(_TARGET, results, input_output_aliases=places, vmap_method="sequential")
        return tuple(call(*arrays, *before, stencil=key))

    def derivative(arrays: Any, directions: Any) -> Any:
        raise Error(
            f"`{name}` has no derivative that stencilc knows",
            "`jax.custom_vjp` around a function that calls it gives it one, which may be a stencil, too",
        )

    computed.__name__ = name
    own = jax.custom_jvp(computed)
    own.defjvp(derivative)
    return jax.jit(own)  # type: ignore[no-any-return]

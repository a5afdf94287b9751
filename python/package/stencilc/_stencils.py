"""Stencils, which are called on arrays."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable, Dict, Mapping, Tuple

from . import _core
from ._arrays import Kind
from ._errors import Error
from ._jax import JaxStencil
from ._programs import Program, Run
from ._subjects import Subject
from ._torch import operator


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

    @property
    def torch(self) -> Any:
        """The stencil as an operator of torch's (`torch.library.custom_op`), which programs that `torch.compile` compiles call:

            smooth = stencilc.load("laplap").stencil.torch
            f = torch.compile(lambda phi: smooth(phi).relu())

        It takes the fields that are read, in the order declared, then parameters by their names, and gives new arrays, of an `inout` field,
        too: a tensor, or a tuple of several.
        """
        self._alone()
        return operator(self, self._options, self._core.text)

    @property
    def jax(self) -> JaxStencil:
        """The stencil as a function of jax's, which programs that `jax.jit` compiles call, on the CPU and on GPUs:

            smooth = stencilc.load("laplap").stencil.jax
            f = jax.jit(lambda phi: jax.numpy.nansum(smooth(phi)))

        It takes the fields that are read, in the order declared, then parameters by their names, and gives new arrays, of an `inout` field,
        too: one, or a tuple of several.
        """
        self._alone()
        return JaxStencil(self, self._core, self._how)

    def __call__(self, place: Any = None, /, **given: Any) -> Any:
        """Computes it, and gives its output, or a named tuple of several.

        Arrays have the axes (k, j, i), of which i is the fastest. Outputs that are given are written in place, and nothing else of
        them than the cells that are computed; the others are new, and hold NaN (0, False) where nothing is computed. An `inout` field
        is changed in place; given two arrays, `u=(old, new)`, it is read from one and written to the other, and `(old, None)` makes a
        new one. On a GPU it is started in the current stream of the arrays' library, and not waited for.

        What runs over a mesh, or on cells that stand in no rows, is given that first: `div(mesh, a=a)`. Its inputs are copied.
        """
        self._alone()
        if place is not None or self.over is not None:
            return self._elsewhere(self._placed(place), given)
        lending, outputs, kind = self._lend(given)
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
        self._alone()
        lending, outputs, kind = self._lend(given)
        device = lending.device
        current = None if device is None else kind.stream(device)
        return lending.bind(outputs, current, kind.is_immutable)

    def start(self, place: Any = None, /, **given: Any) -> Run:
        """The stencil as a program that calls it once; see `Program.start`."""
        return Program(self._core, self._options).start(place, **given)

    def _alone(self) -> None:
        """A call computes on arrays of one device."""
        if self._options.get("processes"):
            raise Error(
                f"`processes` is for what is started, and `{self.name}` is called on arrays of one process",
                "start it, `.start(...)`, or a program that calls it; or leave `processes` out",
            )
        if self._options.get("gpus", 1) != 1:
            raise Error(
                f"`gpus` is for what is started, and `{self.name}` is called on arrays of one device",
                "start it, `.start(...)`, or a program that calls it; or leave `gpus` out",
            )

    def _lend(self, given: Mapping[str, Any]) -> Tuple[_core.Lending, Any, Kind]:
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
        return lending, outputs[0] if len(outputs) == 1 else self._tuple(*outputs), kind

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

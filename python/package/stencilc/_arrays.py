"""Arrays by whose they are: how new ones are made that match those that came in, and in which stream their library works.

NumPy is the only library that is imported; the others are there if somebody has given an array of theirs.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._errors import Error

#: Of an element that nothing computes: what the command line writes there, too.
NOTHING: Dict[str, Any] = {"float64": float("nan"), "float32": float("nan"), "int32": 0, "bool": False}


class Kind:
    """The arrays of a library. This is NumPy's."""

    #: Whether arrays are never written, so that those that were just made are once.
    is_immutable = False

    def new(self, shape: Sequence[int], dtype: str, device: Optional[int]) -> Any:
        """An array that holds nothing yet: NaN, 0 or False."""
        return np.full(tuple(shape), NOTHING[dtype], dtype=dtype)

    def stream(self, device: int) -> Optional[Callable[[], int]]:
        """What says the stream that the library works in now."""
        return None

    def to_host(self, array: Any) -> Any:
        """A copy in the host's memory, as NumPy's."""
        return np.ascontiguousarray(array)

    def of_host(self, array: Any, like: Any) -> Any:
        """An array of NumPy's as one of this library's, on the device of `like`."""
        return array


class CuPy(Kind):
    def new(self, shape: Sequence[int], dtype: str, device: Optional[int]) -> Any:
        cupy = _library("cupy")
        with cupy.cuda.Device(device):
            return cupy.full(tuple(shape), NOTHING[dtype], dtype=dtype)

    def stream(self, device: int) -> Optional[Callable[[], int]]:
        cupy = _library("cupy")
        current = cupy.cuda.get_current_stream

        def handle() -> int:
            return int(current(device).ptr)

        try:
            handle()
        except TypeError:
            # Before CuPy 11 it was that of the current device.
            return lambda: int(current().ptr)
        return handle

    def to_host(self, array: Any) -> Any:
        return _library("cupy").asnumpy(array)

    def of_host(self, array: Any, like: Any) -> Any:
        cupy = _library("cupy")
        with cupy.cuda.Device(like.device):
            return cupy.asarray(array)


class Cuda(CuPy):
    """Arrays on a GPU, of whatever library: new ones are CuPy's, if it is there."""

    def new(self, shape: Sequence[int], dtype: str, device: Optional[int]) -> Any:
        try:
            return super().new(shape, dtype, device)
        except ModuleNotFoundError:
            raise Error("new arrays on a GPU would be CuPy's, and it is not installed", "give arrays for all outputs") from None

    def stream(self, device: int) -> Optional[Callable[[], int]]:
        # Their library says it with each array, or works in the default one.
        return None


class Torch(Kind):
    def new(self, shape: Sequence[int], dtype: str, device: Optional[int]) -> Any:
        torch = _library("torch")
        place = "cpu" if device is None else f"cuda:{device}"
        return torch.full(tuple(shape), NOTHING[dtype], dtype=getattr(torch, dtype), device=place)

    def stream(self, device: int) -> Optional[Callable[[], int]]:
        current = _library("torch").cuda.current_stream
        return lambda: int(current(device).cuda_stream)

    def to_host(self, array: Any) -> Any:
        return np.ascontiguousarray(array.detach().cpu().numpy())

    def of_host(self, array: Any, like: Any) -> Any:
        return _library("torch").from_numpy(array).to(like.device)


class Jax(Kind):
    is_immutable = True

    def new(self, shape: Sequence[int], dtype: str, device: Optional[int]) -> Any:
        jax = _library("jax")
        numpy = sys.modules["jax.numpy"]
        place = None
        if device is not None:
            place = next((own for own in jax.devices("gpu") if own.id == device), jax.devices("gpu")[0])
        elif jax.default_backend() != "cpu":
            place = jax.devices("cpu")[0]
        made = numpy.full(tuple(shape), NOTHING[dtype], dtype=dtype, device=place).block_until_ready()
        if str(made.dtype) != dtype:
            raise Error(
                f"jax makes no arrays of {dtype} as it is set up", 'jax.config.update("jax_enable_x64", True) lets it'
            )
        return made

    def to_host(self, array: Any) -> Any:
        return np.array(array)

    def of_host(self, array: Any, like: Any) -> Any:
        return _library("jax").device_put(array, next(iter(like.devices())))


_KINDS: List[Tuple[str, Kind]] = [("cupy", CuPy()), ("torch", Torch()), ("jax", Jax()), ("jaxlib", Jax())]
NUMPY = Kind()
_CUDA = Cuda()


def _library(name: str) -> Any:
    import importlib

    return importlib.import_module(name)


def kind_of(arrays: Sequence[Any]) -> Kind:
    """Whose arrays these are, by the first of a library that is known; those of others get NumPy's, or CuPy's on a GPU."""
    for array in arrays:
        library = type(array).__module__.partition(".")[0]
        for name, kind in _KINDS:
            if library == name:
                return kind
    if any(hasattr(array, "__cuda_array_interface__") for array in arrays):
        return _CUDA
    return NUMPY


def is_labelled(value: Any) -> bool:
    """Whether a value is a DataArray of xarray's, or something alike."""
    return hasattr(value, "dims") and hasattr(value, "coords") and hasattr(value, "data")


class Labels:
    """Names of dimensions, coordinates and attributes of the DataArrays that came in, for those that come out."""

    def __init__(self, dims: Mapping[str, str]) -> None:
        self._dims = dict(dims)
        self._first: Any = None
        #: by axis
        self._names: Dict[str, str] = {}

    def taken(self, name: str, value: Any, axes: Sequence[str]) -> Any:
        """The numbers of a DataArray, with axes in the order that its field has. Nothing is copied."""
        plain = [axis.partition("+")[0] for axis in axes]
        dims = tuple(str(own) for own in value.dims)
        wanted = [self._dims.get(axis, axis) for axis in plain]
        if set(wanted) <= set(dims) and len(dims) == len(wanted):
            value = value.transpose(*wanted)
        elif any(self._dims.get(axis) is not None for axis in plain):
            raise Error(
                f"`{name}` has the dimensions {dims}, and {tuple(wanted)} are needed",
                "using(dims=...) says what each axis is called: dict(i=\"lon\", j=\"lat\", k=\"level\")",
            )
        data = value.data
        if type(data).__module__.partition(".")[0] == "dask":
            raise Error(f"the numbers of `{name}` are not there yet", f"`{name}.compute()` brings them")
        if self._first is None:
            self._first = value
        if len(value.dims) == len(plain):
            self._names.update(zip(plain, (str(own) for own in value.dims)))
        return data

    def given(self, name: str, array: Any, axes: Sequence[str]) -> Any:
        """An array as a DataArray like those that came in, if any did."""
        like = self._first
        if like is None:
            return array
        plain = [axis.partition("+")[0] for axis in axes][-array.ndim :] if array.ndim else []
        dims = [self._names.get(axis, axis) for axis in plain]
        sizes = dict(zip(dims, array.shape))
        coords = {
            own: value
            for own, value in like.coords.items()
            if all(sizes.get(str(dim)) == size for dim, size in zip(value.dims, value.shape))
        }
        return type(like)(array, dims=dims, coords=coords, attrs=dict(like.attrs), name=name)

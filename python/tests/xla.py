"""XLA as a handler sees it: its structures, filled in by a test, from the header `xla/ffi/api/c_api.h`."""

from __future__ import annotations

import ctypes as c
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import stencilc

POINTER = c.c_void_p


class Version(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("major", c.c_int), ("minor", c.c_int)]


class Metadata(c.Structure):
    _fields_ = [("size", c.c_size_t), ("version", Version), ("traits", c.c_uint32), ("state", c.c_int64)]


class Extension(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kind", c.c_int), ("next", POINTER), ("metadata", POINTER)]


class ErrorArgs(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("message", c.c_char_p), ("code", c.c_int)]


class PlaceArgs(c.Structure):
    """Of a stream or of a GPU's number: what is asked for comes last."""

    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("context", POINTER), ("found", c.c_int64)]


#: Where functions of XLA's stand among all.
FUNCTIONS = {"Error_Create": 0, "Stream_Get": 4, "DeviceOrdinal_Get": 17}


class Api(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("version", Version), ("internal", POINTER)] + [
        ("functions", POINTER * 18)  # type: ignore[list-item]
    ]


class Buffer(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("dtype", c.c_int), ("data", POINTER)] + [
        ("rank", c.c_int64), ("dims", c.POINTER(c.c_int64))  # type: ignore[list-item]
    ]


class Values(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("count", c.c_int64), ("types", POINTER), ("values", POINTER)]


class Span(c.Structure):
    _fields_ = [("start", c.c_char_p), ("count", c.c_size_t)]


class Attributes(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("count", c.c_int64)] + [
        ("types", POINTER), ("names", POINTER), ("values", POINTER)  # type: ignore[list-item]
    ]


class Frame(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", POINTER), ("api", POINTER), ("context", POINTER), ("stage", c.c_int)] + [
        ("args", Values), ("rets", Values), ("attributes", Attributes), ("future", POINTER)  # type: ignore[list-item]
    ]


TYPES = {"bool": 1, "int32": 4, "int64": 5, "float32": 11, "float64": 12}
EXECUTE, STRING, SCALAR = 3, 4, 3

#: What a test gives: an array's type, address and shape.
Place = Tuple[str, int, Tuple[int, ...]]


class Xla:
    """One that calls a handler of stencilc's; `said` is what it was told last."""

    def __init__(self, version: Tuple[int, int] = (0, 3), stream: int = 0, device: Optional[int] = 0) -> None:
        self.said: Optional[str] = None
        self.code = 0
        self._kept: List[Any] = []
        self.api = Api(size=c.sizeof(Api), version=Version(c.sizeof(Version), None, *version))
        self.asked: List[str] = []

        def failed(args: Any) -> int:
            own = c.cast(args, c.POINTER(ErrorArgs)).contents
            assert own.size == 28
            self.said, self.code = own.message.decode(), own.code
            return 1

        def streamed(args: Any) -> int:
            self.asked.append("stream")
            c.cast(args, c.POINTER(PlaceArgs)).contents.found = stream
            return 0

        def numbered(args: Any) -> int:
            self.asked.append("device")
            own = c.cast(args, c.POINTER(PlaceArgs)).contents
            assert own.size == 28
            c.cast(c.addressof(own) + 24, c.POINTER(c.c_int32))[0] = -1 if device is None else device
            return 0

        function = c.CFUNCTYPE(c.c_void_p, POINTER)
        for name, own in (("Error_Create", failed), ("Stream_Get", streamed), ("DeviceOrdinal_Get", numbered)):
            self._kept.append(function(own))
            self.api.functions[FUNCTIONS[name]] = c.cast(self._kept[-1], POINTER)

    def frame(self, args: List[Place], rets: List[Place], said: Dict[str, str], kind: int = 1) -> Frame:
        """What a call looks like."""
        keep = self._kept.append

        def values(places: List[Place]) -> Values:
            buffers = []
            for dtype, address, shape in places:
                dims = (c.c_int64 * len(shape))(*shape)
                keep(dims)
                buffers.append(Buffer(c.sizeof(Buffer), None, TYPES[dtype], address, len(shape), dims))
            pointers = (POINTER * len(buffers))(*(c.addressof(own) for own in buffers))
            types = (c.c_int * len(buffers))(*[kind] * len(buffers))
            keep((buffers, pointers, types))
            return Values(c.sizeof(Values), None, len(buffers), c.addressof(types), c.addressof(pointers))

        spans = [(Span(k.encode(), len(k.encode())), Span(v.encode(), len(v.encode()))) for k, v in said.items()]
        names, texts = ((POINTER * len(spans))(*(c.addressof(own[at]) for own in spans)) for at in (0, 1))
        types = (c.c_int * len(spans))(*[STRING] * len(spans))
        keep((spans, names, texts, types))
        attributes = Attributes(
            c.sizeof(Attributes), None, len(spans), c.addressof(types), c.addressof(names), c.addressof(texts)
        )
        return Frame(
            c.sizeof(Frame), None, c.addressof(self.api), None, EXECUTE, values(args), values(rets), attributes, None
        )

    def calls(self, platform: str, frame: Frame) -> bool:
        """Whether a call goes well."""
        self.said = None
        pointer = c.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = POINTER, [c.py_object, c.c_char_p]
        address = pointer(stencilc._core.capsule(platform), b"xla._CUSTOM_CALL_TARGET")
        # Without Python's lock, as XLA does.
        return not c.CFUNCTYPE(c.c_void_p, POINTER)(address)(c.addressof(frame))

    def asks_version(
        self, platform: str = "cpu", size: int = c.sizeof(Metadata), tells: bool = True
    ) -> Optional[Tuple[int, int]]:
        """The version that a handler says it is of; XLA tells its own, or not."""
        metadata = Metadata(size, Version(c.sizeof(Version), None, -1, -1), 7, 7)
        extension = Extension(c.sizeof(Extension), 1, None, c.addressof(metadata))
        frame = Frame(c.sizeof(Frame), c.addressof(extension), c.addressof(self.api) if tells else None)
        return (metadata.version.major, metadata.version.minor) if self.calls(platform, frame) else None


def of_numpy(array: Any) -> Place:
    return (str(array.dtype), array.ctypes.data, array.shape)


def declared(text: Any, *arrays: Tuple[str, Tuple[int, ...], str], **params: Any) -> str:
    """The key of a stencil, as one that a program traced would have."""
    stencil = text.stencil if isinstance(text, stencilc.Text) else text
    return stencilc._core.declare(stencil._core, list(arrays), params, stencil._how)[0]


def filled(shape: Tuple[int, ...], dtype: str = "float64") -> Any:
    return np.full(shape, np.nan, dtype)

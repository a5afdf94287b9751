"""What XLA calls, called as XLA does: no jax is needed, and nothing that XLA could say leads astray."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
import stencilc
import xla
from conftest import LAPLAP
from xla import Xla, declared, filled, of_numpy


def call(own: Xla, phi: Any, res: Any, **said: str) -> xla.Frame:
    key = declared(stencilc.compile(LAPLAP), ("phi", phi.shape, str(phi.dtype)))
    return own.frame([of_numpy(phi), of_numpy(res)], [of_numpy(res)], {"other": "x", "stencil": key, **said})


@pytest.mark.parametrize("version", [(0, 1), (0, 3), (0, 5)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_call_computes(phi: Any, version: Any, dtype: str) -> None:
    phi = phi.astype(dtype)
    own, res = Xla(version), filled(phi.shape, dtype)
    assert own.asks_version() == version == own.asks_version("CUDA")
    assert own.asks_version(tells=False) == (0, 1), "which all take"
    for _ in range(3):
        assert own.calls("cpu", call(own, phi, res)), own.said
        np.testing.assert_array_equal(res, stencilc.compile(LAPLAP)(phi=phi))
        phi += 1
    assert own.asked == []


def test_threads_call_at_once(phi: Any) -> None:
    wrong = []

    def work(number: int) -> None:
        own, given, res = Xla(), phi * number, filled(phi.shape)
        for _ in range(10):
            if not own.calls("cpu", call(own, given, res)):
                wrong.append(own.said)
            if not np.array_equal(res, stencilc.compile(LAPLAP)(phi=given), equal_nan=True):
                wrong.append("another result")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for own in threads:
        own.start()
    for own in threads:
        own.join()
    assert not wrong


@pytest.mark.parametrize("version", [(0, 0), (0, 6), (1, 3), (-1, 0)])
def test_other_versions_are_refused(phi: Any, version: Any) -> None:
    own, res = Xla(version), filled(phi.shape)
    assert own.asks_version() is None
    assert f"is of version {version[0]}.{version[1]}, and stencilc knows 0.1 to 0.5" in str(own.said)
    assert not own.calls("cpu", call(own, phi, res))
    assert np.isnan(res).all()


def test_shorter_structures_are_not_read_beyond_their_end(phi: Any) -> None:
    """At every length that they could have had, up to the whole, which is what computes."""
    own, res = Xla(), filled(phi.shape)
    frame = call(own, phi, res)
    for size in range(0, xla.Frame.future.offset, 4):
        frame.size = size
        # Where not even the functions are reached that make errors, nothing is said, and nothing computed.
        assert own.calls("cpu", frame) == (size < 24), size
        assert np.isnan(res).all()
    frame.size = xla.Frame.future.offset
    for part in (frame.args, frame.rets, frame.attributes):
        whole, part.size = part.size, 24
        assert not own.calls("cpu", frame) and np.isnan(res).all()
        part.size = whole
    buffer = ctypes.cast(ctypes.cast(frame.args.values, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(xla.Buffer))
    buffer.contents.size = 40
    assert not own.calls("cpu", frame) and "is no array" in str(own.said)
    buffer.contents.size = ctypes.sizeof(xla.Buffer)
    assert own.calls("cpu", frame)
    assert own.asks_version(size=24) == (-1, -1), "nothing is written where there is no room"


def test_results_may_go_elsewhere(phi: Any) -> None:
    """Where nothing is computed they hold what came in, as in place."""
    own, before, after = Xla(), np.random.default_rng(9).random(phi.shape), filled(phi.shape)
    key = declared(stencilc.compile(LAPLAP), ("phi", phi.shape, "float64"))
    expected, came = before.copy(), before.copy()
    stencilc.compile(LAPLAP)(phi=phi, res=expected)
    assert own.calls("cpu", own.frame([of_numpy(phi), of_numpy(before)], [of_numpy(after)], {"stencil": key})), own.said
    np.testing.assert_array_equal(after, expected)
    np.testing.assert_array_equal(before, came)


def test_calls_that_no_program_makes_are_errors(phi: Any) -> None:
    own, res = Xla(), filled(phi.shape)
    text = stencilc.compile(LAPLAP)
    key = declared(text, ("phi", phi.shape, "float64"))
    arrays = [of_numpy(phi), of_numpy(res)]
    other = np.zeros(phi.shape)
    mask = np.full(phi.shape, 3, "uint8")
    choose = stencilc.compile("stencil choose { in m: bool; out b: bool; b = m }")
    choice = declared(choose, ("m", phi.shape, "bool"))
    negative = ("float64", phi.ctypes.data, (3, -9, 11))
    frames = [
        (own.frame(arrays, arrays[1:], {}), "it is not said which stencil"),
        (own.frame(arrays, arrays[1:], {"stencil": "laplap abc"}), "knows nothing of the stencil `laplap`"),
        (own.frame(arrays, arrays[1:], {"stencil": "\x1b[31m"}), "knows nothing of the stencil `\\u{1b}[31m`"),
        (own.frame(arrays[1:], arrays[1:], {"stencil": key}), "1 arrays come in and 1 go out, and there are to be 2 and 1"),
        (own.frame(arrays, [], {"stencil": key}), "2 arrays come in and 0 go out"),
        (own.frame(arrays, [("float64", other.ctypes.data, (3, 9, 10))], {"stencil": key}), "gives `res` another type or shape"),
        (own.frame(arrays, [("float32", other.ctypes.data, phi.shape)], {"stencil": key}), "gives `res` another type or shape"),
        (own.frame(arrays, arrays[1:], {"stencil": key}, kind=9), "is no array"),
        (own.frame([negative, arrays[1]], arrays[1:], {"stencil": key}), "is no array"),
        (own.frame([("int64", *arrays[0][1:]), arrays[1]], arrays[1:], {"stencil": key}), "type 5 of XLA's"),
        (own.frame([("float32", *arrays[0][1:]), arrays[1]], arrays[1:], {"stencil": key}), "`phi` is an array of f64"),
        (own.frame([("float64", phi.ctypes.data, (3, 9, 10)), arrays[1]], arrays[1:], {"stencil": key}), "shape"),
        (own.frame([("float64", phi.ctypes.data, (2, 2, 2, 2)), arrays[1]], arrays[1:], {"stencil": key}), "shape (2, 2, 2, 2)"),
        (own.frame([arrays[0]] * 2, [arrays[0]], {"stencil": key}), "overlaps that of `phi`"),
        (
            own.frame([("bool", mask.ctypes.data, mask.shape)] * 2, [("bool", mask.ctypes.data, mask.shape)], {"stencil": choice}),
            "`m`",
        ),
    ]
    for frame, words in frames:
        assert not own.calls("cpu", frame)
        assert words in str(own.said), own.said
        assert own.code in (3, 9, 13)
    frame = own.frame(arrays, arrays[1:], {"stencil": key})
    frame.stage = 1
    assert not own.calls("cpu", frame) and "nothing to prepare" in str(own.said)
    frame.stage, frame.args.count = xla.EXECUTE, -1
    assert not own.calls("cpu", frame) and "is no array" in str(own.said)
    types = ctypes.cast(frame.attributes.types, ctypes.POINTER(ctypes.c_int))
    types[0] = xla.SCALAR
    assert not own.calls("cpu", frame) and "it is not said which" in str(own.said)
    assert np.isnan(res).all()


def test_devices_that_are_chosen_compute(phi: Any) -> None:
    text = stencilc.compile(LAPLAP)
    expected = text(phi=phi)
    for device in ("cpu", "native", "emulate"):
        own, res = Xla(), filled(phi.shape)
        key = declared(text.using(device=device), ("phi", phi.shape, "float64"))
        arrays = [of_numpy(phi), of_numpy(res)]
        assert own.calls("cpu", own.frame(arrays, arrays[1:], {"stencil": key})), own.said
        np.testing.assert_array_equal(res, expected)
        frame = own.frame(arrays, arrays[1:], {"stencil": key})
        assert not own.calls("CUDA", frame) and f"{device} is to compute, and the arrays are on cuda:0" in str(own.said)
    key = declared(text.using(device="cuda:1"), ("phi", phi.shape, "float64"))
    frame = own.frame(arrays, arrays[1:], {"stencil": key})
    assert not own.calls("cpu", frame) and "cuda:1 is to compute, and the arrays are in the host's memory" in str(own.said)


def test_a_gpu_is_asked_of_xla(phi: Any) -> None:
    """In whose memory the arrays are; there may be none here, and then it says so."""
    res = filled(phi.shape)
    own = Xla(stream=0x7, device=None)
    assert not own.calls("CUDA", call(own, phi, res)) and "gives no number of the GPU" in str(own.said)
    own = Xla((0, 1))
    # That version has no function for it.
    own.api.size = xla.Api.functions.offset + xla.FUNCTIONS["DeviceOrdinal_Get"] * 8
    assert not own.calls("CUDA", call(own, phi, res)) and "does not tell the number of the GPU" in str(own.said)
    if stencilc._core.gpus() == 0:
        own = Xla(device=5)
        assert not own.calls("CUDA", call(own, phi, res))
        assert own.asked == ["device", "stream"] and "cuda:5" in str(own.said) or "GPU" in str(own.said), own.said
        assert np.isnan(res).all()


def test_keys_are_the_same_in_every_process(phi: Any) -> None:
    """Programs that were compiled are kept in files, and taken by others: a key is what is computed."""
    key = declared(stencilc.compile(LAPLAP), ("phi", phi.shape, "float64"))
    assert key == declared(stencilc.compile(LAPLAP, name="other"), ("phi", (2, 7, 8), "float64"))
    scaled = "stencil laplap { in phi; param a: real = 1; out res; res = a * phi }"
    others = [
        declared(stencilc.compile(LAPLAP), ("phi", phi.shape, "float32")),
        declared(stencilc.compile(LAPLAP.replace("4*a", "5*a")), ("phi", phi.shape, "float64")),
        declared(stencilc.compile(LAPLAP).using(device="native"), ("phi", phi.shape, "float64")),
        declared(stencilc.compile(LAPLAP).using(untuned=True), ("phi", phi.shape, "float64")),
        declared(stencilc.compile(scaled), ("phi", phi.shape, "float64"), a=2),
        declared(stencilc.compile(scaled), ("phi", phi.shape, "float64"), a=3),
    ]
    assert len({key, *others}) == 7

"""Calls on a GPU: where the arrays are, in the order of the caller's stream. Each library is tested that is there."""

from __future__ import annotations

import gc
import time
from typing import Any, Iterator

import numpy as np
import pytest
import stencilc
from conftest import LAPLAP, WAVE, told
from xla import Xla, declared

if stencilc._core.gpus() == 0:
    pytest.skip("no GPU", allow_module_level=True)

#: A step that takes its time, so that whoever does not wait for it would be seen: a long chain of dependent operations a cell.
SLOW = "stencil slow { in a; out b; let x = " + "sin(" * 60 + "a" + ")" * 60 + "; b = x + a[i-1] - a[i-1] }"
NEXT = "stencil next { in a; out b; b = a[i-1] + 1.0 }"


class Library:
    """What the tests need of a library."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.own: Any = pytest.importorskip(name)

    def array(self, numbers: Any) -> Any:
        return self.own.asarray(numbers) if self.name == "cupy" else self.own.from_numpy(numbers.copy()).cuda()

    def host(self, array: Any) -> Any:
        return self.own.asnumpy(array) if self.name == "cupy" else array.cpu().numpy()

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr if self.name == "cupy" else array.data_ptr())

    def stream(self) -> Any:
        # One that does not wait for the default stream, nor that for it.
        return self.own.cuda.Stream(non_blocking=True) if self.name == "cupy" else self.own.cuda.Stream()

    def within(self, stream: Any) -> Any:
        return stream if self.name == "cupy" else self.own.cuda.stream(stream)

    def wait(self) -> None:
        if self.name == "cupy":
            self.own.cuda.Device().synchronize()
        else:
            self.own.cuda.synchronize()

    def used(self) -> int:
        """Bytes that the library has handed out."""
        if self.name == "cupy":
            return int(self.own.get_default_memory_pool().used_bytes())
        return int(self.own.cuda.memory_allocated())


@pytest.fixture(params=["cupy", "torch"])
def library(request: Any) -> Iterator[Library]:
    yield Library(request.param)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_are_computed_where_they_are(library: Library, dtype: str) -> None:
    phi = np.random.default_rng(1).random((5, 40, 50)).astype(dtype)
    laplap = stencilc.compile(LAPLAP)
    expected = laplap(phi=phi)
    given = library.array(phi)
    res = laplap(phi=given)
    assert type(res) is type(given) and str(res.dtype).endswith(dtype)
    np.testing.assert_array_equal(library.host(res), expected)
    out = library.array(np.full_like(phi, 7))
    address = library.pointer(out)
    library.wait()
    gc.collect()
    before = library.used()
    step = laplap.bind(phi=given, res=out)
    for _ in range(3):
        assert step() is out
    step.wait()
    assert library.pointer(out) == address and library.used() == before
    found = library.host(out)
    np.testing.assert_array_equal(found[step.region], expected[step.region])
    assert (found[:, :2] == 7).all()
    # A part of a larger array.
    large = library.array(np.zeros((5, 60, 90), dtype))
    large[:, 10:50, 20:70] = given
    target = library.array(np.zeros((5, 60, 90), dtype))
    laplap(phi=large[:, 10:50, 20:70], res=target[:, 10:50, 20:70])
    np.testing.assert_array_equal(library.host(target)[:, 12:48, 22:68], expected[:, 2:-2, 2:-2])


def test_work_is_in_the_order_of_the_stream(library: Library) -> None:
    """A slow call, then a quick one on its result, again and again in a stream that waits for nobody: out of order, it reads what was not
    written yet."""
    a = np.random.default_rng(2).random((16, 256, 256))
    slow, quick = stencilc.compile(SLOW), stencilc.compile(NEXT)
    middle = np.zeros_like(a)
    slow(a=a, b=middle)
    expected = quick(a=middle)
    for way in ("current", "given", "library"):
        given, between, out = library.array(a), library.array(np.zeros_like(a)), library.array(np.zeros_like(a))
        first, second = slow.bind(a=given, b=between), quick.bind(a=between, b=out)
        stream = library.stream()
        library.wait()
        for _ in range(5):
            if way == "given":
                first(stream=stream)
                second(stream=stream)
            else:
                with library.within(stream):
                    first()
                    second()
                    if way == "library":
                        # What the library itself does next sees the result, and the call after it what the library did.
                        between *= 0
                        out += 1
        stream.synchronize()
        found = library.host(out)
        region = second.region
        plus = 1 if way == "library" else 0
        np.testing.assert_array_equal(found[region], expected[region] + plus)


def test_a_handle_is_a_stream(library: Library) -> None:
    phi = np.random.default_rng(3).random((2, 20, 30))
    step = stencilc.compile(LAPLAP).bind(phi=library.array(phi))
    stream = library.stream()
    library.wait()
    handle = int(stream.ptr if library.name == "cupy" else stream.cuda_stream)

    class Protocol:
        def __cuda_stream__(self) -> Any:
            return (0, handle)

    for own in (handle, Protocol(), stream):
        res = step(stream=own)
        stream.synchronize()
        np.testing.assert_array_equal(library.host(res)[step.region], stencilc.compile(LAPLAP)(phi=phi)[step.region])


def test_what_is_changed_in_place_goes_on(library: Library) -> None:
    u = np.arange(1000.0).reshape(1, 10, 100)
    given = library.array(u)
    step = stencilc.compile("stencil s { inout u; u = u[i-1] }").bind(u=given)
    streams = [library.stream(), library.stream()]
    library.wait()
    for number in range(20):
        step(stream=streams[number % 2])
        # The next one is in another stream, and reads what this one wrote.
        streams[number % 2].synchronize()
    found = library.host(given)
    expected = u.copy()
    for _ in range(20):
        expected[:, :, 1:] = expected[:, :, :-1].copy()
    np.testing.assert_array_equal(found, expected)


def test_arrays_are_kept_and_may_be_dropped_on_the_way(library: Library) -> None:
    a = np.random.default_rng(4).random((8, 200, 200))
    expected = stencilc.compile(SLOW)(a=a)
    for _ in range(10):
        step = stencilc.compile(SLOW).bind(a=library.array(a))
        res = step()
        del step
        gc.collect()
        np.testing.assert_array_equal(library.host(res), expected)


def test_a_bound_call_takes_few_microseconds(library: Library, capsys: Any) -> None:
    phi = library.array(np.zeros((1, 8, 8)))
    res = library.array(np.zeros((1, 8, 8)))
    step = stencilc.compile(LAPLAP).bind(phi=phi, res=res)
    stream = library.stream()
    library.wait()
    handle = int(stream.ptr if library.name == "cupy" else stream.cuda_stream)

    def best(work: Any, calls: int = 500) -> float:
        found = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(calls):
                work()
            found.append((time.perf_counter() - start) / calls)
            library.wait()
        return min(found) * 1e6

    times = {
        "current stream": best(step),
        "handle": best(lambda: step(stream=handle)),
        "unbound, output given": best(lambda: stencilc_laplap(phi=phi, res=res)),
        "unbound": best(lambda: stencilc_laplap(phi=phi)),
    }
    with capsys.disabled():
        print(f"\n{library.name}, host time a call (us): " + ", ".join(f"{name} {own:.1f}" for name, own in times.items()))


stencilc_laplap = stencilc.compile(LAPLAP).stencil


def test_places_that_do_not_suit_are_told(library: Library) -> None:
    phi = np.zeros((2, 8, 9))
    given = library.array(phi)
    laplap = stencilc.compile(LAPLAP)
    for call, words in [
        (lambda: laplap(phi=given, res=phi), "`phi` is on cuda:0, and `res` in the host's memory"),
        (lambda: laplap(phi=phi, res=given), "`phi` is in the host's memory, and `res` on cuda:0"),
        (lambda: laplap.using(device="cpu")(phi=given), "cpu is to compute, and `phi` is on cuda:0"),
        (lambda: laplap(phi=given, res=given), "overlaps that of `phi`"),
        (lambda: laplap.using(device="cuda:7")(phi=given), "cuda:7 is to compute, and `phi` is on cuda:0"),
        (lambda: laplap.bind(phi=given)(stream="x"), "a str is no stream"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)


def test_programs_run_on_the_gpu(library: Library) -> None:
    u, v = np.random.default_rng(5).random((2, 2, 60, 80))
    wave = stencilc.compile(WAVE).programs["wave"]
    expected = wave.using(device="cpu").start(u=u, v=v, n=50).finish()
    run = wave.start(u=library.array(u), v=library.array(v), n=50)
    assert run.device == "cuda:0"
    for now in run.every(20):
        assert type(now["u"]) is type(library.array(u))
    np.testing.assert_array_equal(library.host(run["u"]), expected["u"])


def test_jax_arrays_are_computed_on_the_gpu() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU")
    phi = np.random.default_rng(6).random((2, 30, 40)).astype("float32")
    given = jax.numpy.asarray(phi)
    res = stencilc.compile(LAPLAP)(phi=given)
    assert isinstance(res, jax.Array) and res.devices() == given.devices()
    np.testing.assert_array_equal(np.asarray(res), stencilc.compile(LAPLAP)(phi=phi))


def test_programs_of_jax_call_kernels_in_the_order_of_their_streams() -> None:
    """A slow stencil, a quick one on its result, and operations of jax's between them, which see what was written before."""
    jax = pytest.importorskip("jax", reason="no jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU")
    a = np.random.default_rng(2).random((16, 256, 256)).astype("float32")
    slow, quick = stencilc.compile(SLOW), stencilc.compile(NEXT)
    expected = quick(a=np.nan_to_num(slow(a=a)) * np.float32(2)) + np.float32(1)

    @jax.jit
    def work(own: Any) -> Any:
        return quick.jax(jax.numpy.nan_to_num(slow.jax(own)) * 2) + 1

    given = jax.numpy.asarray(a)
    for _ in range(5):
        found = work(given)
    assert found.devices() == given.devices()
    np.testing.assert_array_equal(np.asarray(found), expected)
    many = jax.jit(jax.vmap(work))(jax.numpy.stack([given, 2 * given]))
    np.testing.assert_array_equal(np.asarray(many[0]), expected)
    with pytest.raises(Exception, match="native is to compute, and the arrays are on cuda:0"):
        jax.block_until_ready(slow.using(device="native").jax(given))


def test_a_handler_starts_its_kernel_in_the_stream_that_it_is_told(library: Library) -> None:
    """What XLA calls, with arrays and a stream of another library."""
    a = np.random.default_rng(2).random((16, 256, 256))
    slow, quick = stencilc.compile(SLOW), stencilc.compile(NEXT)
    expected = quick(a=np.nan_to_num(slow(a=a)))
    given, between, out = library.array(a), library.array(np.zeros_like(a)), library.array(np.full_like(a, np.nan))
    stream = library.stream()
    library.wait()
    own = Xla(stream=int(stream.ptr if library.name == "cupy" else stream.cuda_stream))
    places = [("float64", library.pointer(array), a.shape) for array in (given, between, out)]
    keys = [declared(text, ("a", a.shape, "float64")) for text in (slow, quick)]
    for _ in range(5):
        for number, key in enumerate(keys):
            read, written = places[number : number + 2]
            assert own.calls("CUDA", own.frame([read, written], [written], {"stencil": key})), own.said
    stream.synchronize()
    assert own.asked == ["device", "stream"] * 10
    np.testing.assert_array_equal(library.host(out), expected)
    own = Xla(device=1000)
    frame = own.frame(places[:1] + places[2:], places[2:], {"stencil": keys[0]})
    assert not own.calls("CUDA", frame) and "GPU number 1000" in str(own.said)

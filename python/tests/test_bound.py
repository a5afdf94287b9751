"""Stencils that are bound to arrays: what keeps them, several threads, and what goes wrong on the way."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import stencilc
from conftest import hears_interrupts, told


@pytest.mark.parametrize("device", ["cpu", "emulate", "native"])
def test_a_bound_call_computes_from_what_arrays_hold(device: str, laplap: Any, phi: Any) -> None:
    res = np.zeros_like(phi)
    step = laplap.using(device=device).bind(phi=phi, res=res)
    assert step() is res and step.outputs is res
    assert step.region == (slice(0, 3, 1), slice(2, 7, 1), slice(2, 9, 1))
    first = res.copy()
    phi *= 2
    step(stream=None)
    step.wait()
    np.testing.assert_array_equal(res, 2 * first)
    made = laplap.bind(phi=phi)
    np.testing.assert_array_equal(made()[step.region], res[step.region])
    assert made() is made.outputs


@pytest.mark.parametrize("device", ["cpu", "emulate"])
def test_what_is_changed_in_place_goes_on_from_call_to_call(device: str) -> None:
    u = np.arange(8.0).reshape(1, 1, 8)
    step = stencilc.compile("stencil s { inout u; u = u[i-1] }").using(device=device).bind(u=u)
    for _ in range(3):
        assert step() is u
    np.testing.assert_array_equal(u[0, 0], [0, 0, 0, 0, 1, 2, 3, 4])


def test_arrays_are_kept_while_they_are_bound(laplap: Any) -> None:
    phi, res = np.random.default_rng(2).random((2, 2, 300, 300))
    phi, res = phi.copy(), res.copy()
    seen = weakref.ref(phi)
    expected = laplap(phi=phi)
    step = laplap.bind(phi=phi, res=res)
    del phi
    gc.collect()
    assert seen() is not None
    # Memory that was given back would be somebody else's by now.
    others = [np.full((2, 300, 300), 9.0) for _ in range(20)]
    step()
    np.testing.assert_array_equal(res[:, 2:-2, 2:-2], expected[:, 2:-2, 2:-2])
    del step, others
    gc.collect()
    assert seen() is None


def test_several_threads_may_call_one_that_is_bound(laplap: Any) -> None:
    phi = np.random.default_rng(3).random((4, 60, 70))
    expected = laplap(phi=phi)
    for device in ("cpu", "emulate"):
        step = laplap.using(device=device).bind(phi=phi)
        problems = []

        def work() -> None:
            for _ in range(20):
                try:
                    np.testing.assert_array_equal(step(), expected)
                    np.testing.assert_array_equal(laplap(phi=phi), expected)
                except BaseException as error:
                    problems.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not problems


def test_others_use_python_meanwhile(laplap: Any) -> None:
    """A thread counts while another one computes: if Python was held, it would not begin before the end."""
    step = laplap.bind(phi=np.zeros((40, 400, 400)))
    counted, is_done = [0], threading.Event()

    def count() -> None:
        while not is_done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    # However long it takes: it goes on until the other one was seen.
    for _ in range(1000):
        step()
        if counted[0] > before:
            break
    is_done.set()
    thread.join()
    assert counted[0] > before


def test_an_exception_in_the_middle_leaves_all_as_it_is(laplap: Any, phi: Any) -> None:
    step = laplap.bind(phi=phi)
    expected = step().copy()

    class Wrong:
        @property
        def __array_interface__(self) -> Any:
            raise RuntimeError("broken")

    for given in ({"phi": Wrong()}, {"phi": phi, "res": Wrong()}, {"phi": phi, "res": 1}):
        with pytest.raises(stencilc.Error):
            laplap(**given)
    np.testing.assert_array_equal(step(), expected)
    np.testing.assert_array_equal(laplap(phi=phi), expected)


@pytest.mark.parametrize("is_apart", [True, False])
def test_a_panic_is_an_error(is_apart: bool, capfd: Any) -> None:
    with pytest.raises(stencilc.Error) as error:
        stencilc._core.mistaken(is_apart)
    assert str(error.value).startswith("a mistake in stencilc: a test asked for it") and error.value.fault == "check"


def run(script: str, *, interrupts: bool = False) -> "subprocess.CompletedProcess[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_interrupts,
    )
    if interrupts:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, err)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_is_refused_once_something_was_computed() -> None:
    done = run(
        """
        import os, warnings, numpy as np, stencilc
        warnings.simplefilter("ignore")
        laplap = stencilc.load("laplap")
        phi = np.random.default_rng(1).random((2, 9, 9))

        def child(work):
            number = os.fork()
            if number == 0:
                try:
                    work()
                    print("computed", flush=True)
                except stencilc.Error as error:
                    print(error, flush=True)
                os._exit(0)
            os.waitpid(number, 0)

        child(lambda: laplap(phi=phi))
        step = laplap.bind(phi=phi)
        step()
        child(lambda: laplap(phi=phi))
        child(step)
        child(lambda: stencilc.load("hdiff").fields)
        step()
        print("still here")
        """
    )
    lines = done.stdout.splitlines()
    refused = "this process was forked from one that had computed with stencilc, whose threads and GPU it has not"
    assert done.returncode == 0 and lines[0] == "computed" and lines[1] == lines[3] == refused, done
    assert "spawn" in lines[2] and lines[5:] == ["computed", "still here"], done


def test_an_interrupt_ends_a_long_run() -> None:
    done = run(
        """
        import numpy as np, stencilc
        run = stencilc.load("heat").programs["heat_periodic"].using(device="cpu").start(t=np.zeros((1, 64, 64)), steps=10**9)
        run.step(1)
        try:
            print("ready", flush=True)
            run.step(10**9)
        except KeyboardInterrupt:
            print(run.done > 0, run["t"].shape)
        """,
        interrupts=True,
    )
    assert done.returncode == 0 and done.stdout == "True (1, 64, 64)\n", done


def test_pools_hold_calls_of_several_shapes(laplap: Any) -> None:
    numbers = np.random.default_rng(4)
    for _ in range(3):
        for extent in range(5, 20):
            phi = numbers.random((2, extent, 7))
            single = laplap(phi=phi.astype("float32"))
            assert single.dtype == np.float32
            np.testing.assert_allclose(single, laplap.using(device="emulate")(phi=phi), rtol=1e-3, atol=1e-4)


def test_what_is_bound_is_refused_like_what_is_called(laplap: Any, phi: Any) -> None:
    for given in ({}, {"phi": phi, "res": phi}, {"phi": phi[:, :3]}, {"phi": phi, "alpha": 1}):
        with pytest.raises(stencilc.Error) as error:
            laplap.bind(**given)
        told(error)

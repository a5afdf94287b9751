"""Programs that run, on grids, over meshes and on cells."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import numpy as np
import pytest
import stencilc
from conftest import WAVE, command, told


@pytest.fixture
def fields() -> Any:
    return np.random.default_rng(5).random((2, 2, 12, 16))


def expected(u: Any, v: Any, steps: int) -> Any:
    for _ in range(steps):
        around = sum(np.roll(u, shift, axis) for shift, axis in ((1, 2), (-1, 2), (1, 1), (-1, 1)))
        u, v = u + 0.1 * v, v + 0.1 * (around - 4 * u)
    return u, v


@pytest.mark.parametrize("device", ["cpu", "emulate"])
def test_a_program_goes_on_step_by_step(device: str, fields: Any) -> None:
    u, v = fields
    before = u.copy()
    wave = stencilc.compile(WAVE).programs["wave"].using(device=device)
    run = wave.start(u=u, v=v, n=7)
    assert (run.device, run.total, run.done, run.outputs) == (device, 7, 0, ["u", "v"])
    assert run.step() == 1 and run.step(2) == 2 and run.done == 3
    a = run["u"]
    assert isinstance(a, np.ndarray) and a.shape == (2, 12, 16) and a.flags.writeable
    a[:] = 0
    assert run["u"].any() and (u == before).all()
    seen = [(now.done, now["v"]) for now in run.every(3)]
    assert [done for done, _ in seen] == [6, 7]
    assert run.step(5) == 0
    np.testing.assert_allclose(run["u"], expected(*fields, 7)[0], rtol=1e-12)
    np.testing.assert_allclose(seen[0][1], expected(*fields, 6)[1], rtol=1e-9, atol=1e-12)
    assert run.finish() is run and "7 steps done" in repr(run)


def test_fields_can_be_given_other_numbers(fields: Any) -> None:
    u, v = fields
    wave = stencilc.compile(WAVE).programs["wave"].using(device="cpu")
    run = wave.start(u=u, v=v)
    run.step(4)
    run["u"] = u
    run["v"] = v
    run.step(2)
    np.testing.assert_allclose(run["u"], expected(u, v, 2)[0], rtol=1e-12)
    single = wave.start(u=u.astype("float32"), v=v.astype("float32"))
    assert single["u"].dtype == np.float32


def test_a_run_is_saved_and_goes_on_elsewhere(tmp_path: pathlib.Path, fields: Any) -> None:
    u, v = fields
    wave = stencilc.compile(WAVE).programs["wave"]
    run = wave.using(device="cpu").start(u=u, v=v)
    run.step(4)
    run.save(tmp_path / "way.npz")
    rest = wave.using(device="emulate").resume(tmp_path / "way.npz")
    assert (rest.done, rest.total) == (4, 9)
    run.finish(), rest.finish()
    np.testing.assert_array_equal(run["u"], rest["u"])
    for call, words in [
        (lambda: wave.resume(tmp_path / "wav.npz"), "cannot read the checkpoint"),
        (lambda: wave.resume(tmp_path / "way.npz", u=u), "`u` is given, and the checkpoint has all fields"),
        (lambda: wave.resume(tmp_path / "way.npz", n=3), "the checkpoint is after 4 steps, and the program has 3"),
        (lambda: stencilc.load("heat").programs["heat_rim"].resume(tmp_path / "way.npz"), ""),
        (lambda: run.save(tmp_path / "none" / "way.npz"), ""),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)


def test_what_is_wrong_with_a_program_is_told(fields: Any) -> None:
    u, v = fields
    wave = stencilc.compile(WAVE).programs["wave"].using(device="cpu")
    run = wave.start(u=u, v=v)
    for call, words in [
        (lambda: wave.start(u=u), "`v`"),
        (lambda: wave.start(u=u, w=v), "program `wave` has no field or parameter `w`\n  help: its fields are u, v; its parameters n"),
        (lambda: wave.start(u=u, v=v[:, :5]), "along j"),
        (lambda: wave.start(u=u, v=v, n=-1), "at least 0"),
        (lambda: wave.start(u=u, v=v, n=1.5), "1.5 is no value for the parameter `n`"),
        (lambda: wave.start(u=u, v=v.astype("float32")), "`u` and `v` are arrays of different precision"),
        (lambda: wave.start(u=u, v=v.astype("int64")), "int64"),
        (lambda: wave.start("grid.npz", u=u, v=v), "a str is no grid and no mesh"),
        (lambda: wave.start((3,), u=u, v=v), "(3,) are no extents of a grid"),
        (lambda: wave.start((3, 12, 16), u=u, v=v), "along k"),
        (lambda: wave.using(draw=["w"]).start((3, 12, 16), u=u, v=v), "w"),
        (lambda: wave.start(), "u"),
        (lambda: run["w"], "`wave` has no field `w`"),
        (lambda: run.__setitem__("u", u[0]), "`u` has the shape"),
        (lambda: run.__setitem__("u", 3), "`u` is a field, and its int is no array"),
        (lambda: run.step(-1), "`step` takes a number of steps from 0 on, not -1"),
        (lambda: run.step(1.5), "`step` takes a number of steps, not 1.5"),
        (lambda: run.every(0), "`every` takes a number of steps from 1 on, not 0"),
        (lambda: stencilc.load("airfoil").programs["airfoil_flow"].start(), "mesh"),
        (lambda: stencilc.load("airfoil").stencils["res_calc"].bind(), "runs over a mesh"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)


@pytest.mark.parametrize("device", ["cpu", "emulate"])
def test_several_devices_leave_the_same_bits(tmp_path: pathlib.Path, device: str, fields: Any) -> None:
    u, v = fields
    wave = stencilc.compile(WAVE).programs["wave"].using(device=device)
    alone, parts = wave.start(u=u, v=v), wave.using(gpus=3).start(u=u, v=v)
    assert parts.step(4) == 4 == alone.step(4)
    parts.save(tmp_path / "way.npz")
    rest = wave.using(gpus=2).resume(tmp_path / "way.npz")
    for run in (alone, parts, rest):
        run.finish()
        np.testing.assert_array_equal(run["u"], alone["u"])
        np.testing.assert_array_equal(run["v"], alone["v"])
    one = stencilc.compile(WAVE).stencils["move"].using(device=device)
    np.testing.assert_array_equal(one.using(gpus=2).start(u=u, v=v).finish()["b"], one(u=u, v=v).b)


def test_parts_of_meshes_leave_the_same_bits(tmp_path: pathlib.Path) -> None:
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    mesh = stencilc.mesh(tmp_path / "airfoil.npz")
    flow = stencilc.load("airfoil").programs["airfoil_flow"].using(device="cpu", draw=True)
    alone, parts = flow.start(mesh, steps=3).finish(), flow.using(gpus=3).start(mesh, steps=3).finish()
    for name in alone.outputs:
        np.testing.assert_array_equal(parts[name], alone[name])
    with pytest.raises(stencilc.Error) as error:
        flow.using(gpus=200).start(mesh, steps=3)
    assert "are too few for 200 parts" in told(error) and "using(gpus=" in told(error)


def test_wrong_numbers_of_devices_are_told(tmp_path: pathlib.Path, fields: Any) -> None:
    u, v = fields
    text = stencilc.compile(WAVE)
    wave, move = text.programs["wave"].using(device="cpu"), text.stencils["move"]
    command("grid", "make", "quadtree", "--size", "16x16", "-o", str(tmp_path / "quad.npz"))
    cells = stencilc.cells(tmp_path / "quad.npz")
    alone = stencilc.compile("stencil s { in a; out b; b = a[i-1] }").stencil.using(device="cpu", gpus=2, levels=3, draw=True)
    number = "give a whole number from 1 to 1024"
    for call, words in [
        (lambda: wave.using(gpus=0), f"0 is no value for `gpus`\n  help: {number}"),
        (lambda: wave.using(gpus=-2), f"-2 is no value for `gpus`\n  help: {number}"),
        (lambda: wave.using(gpus="two"), f"two is no value for `gpus`\n  help: {number}"),
        (lambda: wave.using(gpus=True), f"True is no value for `gpus`\n  help: {number}"),
        (lambda: wave.using(gpus=1.5), f"1.5 is no value for `gpus`\n  help: {number}"),
        (lambda: wave.using(gpus=5000), f"5000 is no value for `gpus`\n  help: {number}"),
        (lambda: wave.using(gpus=13).start(u=u, v=v), "12 rows are too few for 13 parts"),
        (lambda: wave.using(gpus=13).start(u=u, v=v), "using(gpus=12)"),
        (lambda: move.using(gpus=2)(u=u, v=v), "`gpus` is for what is started, and `move` is called on arrays of one device"),
        (lambda: move.using(gpus=2).bind(u=u, v=v), "`gpus` is for what is started"),
        (lambda: alone.start(cells), "is on a grid whose cells stand in no rows"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)
    if stencilc._core.gpus() < 2:
        with pytest.raises(stencilc.Error) as error:
            text.programs["wave"].using(device="cuda", gpus=2).start(u=u, v=v)
        told(error)


def test_inputs_are_drawn_where_that_is_asked_for() -> None:
    wave = stencilc.compile(WAVE).programs["wave"].using(device="cpu", draw=True)
    one, two, other = wave.using(seed=3).start((2, 8, 9)), wave.using(seed=3).start((2, 8, 9)), wave.start((8, 9))
    np.testing.assert_array_equal(one["u"], two["u"])
    assert one["u"].shape == (2, 8, 9) and other["u"].shape == (1, 8, 9)


def test_fields_are_drawn(tmp_path: pathlib.Path, fields: Any) -> None:
    u, v = fields
    run = stencilc.compile(WAVE).programs["wave"].using(device="cpu").start(u=u, v=v)
    before = run.plot("u", tmp_path / "u.png")
    assert (tmp_path / "u.png").read_bytes() == before.png == before._repr_png_() and before.png.startswith(b"\x89PNG\r\n")
    assert "<stencilc picture of u: " in repr(before) and run.plot("u", level=1).png == before.png != run.plot("u", level=0).png
    run.step(3)
    assert run.plot("u").png != before.png
    for call, words in [
        (lambda: run.plot("w"), "`wave` has no field `w`"),
        (lambda: run.plot("u", level=2), "`u` has no level 2\n  help: its levels are 0 to 1"),
        (lambda: run.plot("u", level=-1), "`level` is a number from 0 on, not -1"),
        (lambda: run.plot("u", level="top"), "`level` is a number, not 'top'"),
        (lambda: run.plot("u", "u.jpg"), "ends in .png, not to `u.jpg`"),
        (lambda: run.plot("u", tmp_path / "none" / "u.png"), "none"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)
    # As the command line draws it.
    np.save(tmp_path / "u.npy", u)
    np.save(tmp_path / "v.npy", v)
    (tmp_path / "wave.stn").write_text(WAVE)
    given = [f"--in={name}={tmp_path / name}.npy" for name in "uv"]
    command(
        "run", str(tmp_path / "wave.stn"), "--program", "wave", *given, "--set", "n=3", "--device", "cpu", f"--plot=u={tmp_path / 'c.png'}"
    )
    assert (tmp_path / "c.png").read_bytes() == run.plot("u").png


def test_meshes_and_cells_are_drawn(tmp_path: pathlib.Path) -> None:
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    command("grid", "make", "quadtree", "--size", "16x16", "-o", str(tmp_path / "quad.npz"))
    mesh, cells = stencilc.mesh(tmp_path / "airfoil.npz"), stencilc.cells(tmp_path / "quad.npz")
    run = stencilc.load("airfoil").programs["airfoil_flow"].using(device="cpu", draw=True).start(mesh, steps=1)
    run.finish()
    assert run.plot("q.1").png.startswith(b"\x89PNG") and run.plot("q.1").png != run.plot("q.0").png
    for name, words in [("q", "`q` has 4 parts, and one is drawn"), ("q.7", "`q` has no part `7`"), ("rms", "`rms` cannot be drawn")]:
        with pytest.raises(stencilc.Error) as error:
            run.plot(name)
        assert words in told(error)
    s = stencilc.compile("stencil s { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }").stencil.using(device="cpu", draw=True, levels=2)
    started = s.start(cells)
    with pytest.raises(stencilc.Error) as error:
        started.plot("b")
    assert "`b` has no value yet" in told(error)
    assert started.finish().plot("b").png.startswith(b"\x89PNG")


def test_any_thread_may_ask_a_run(fields: Any) -> None:
    u, v = fields
    run = stencilc.compile(WAVE).programs["wave"].using(device="cpu").start(u=u, v=v, n=60)
    taken = []
    threads = [threading.Thread(target=lambda: [taken.append(run.step()) for _ in range(20)]) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(taken) == 60 == run.done
    np.testing.assert_allclose(run["u"], expected(u, v, 60)[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", ["cpu", "emulate"])
def test_programs_run_over_meshes(tmp_path: pathlib.Path, device: str) -> None:
    command("mesh", "make", "airfoil", "--size", "12x6", "-o", str(tmp_path / "airfoil.npz"))
    mesh = stencilc.mesh(tmp_path / "airfoil.npz")
    assert mesh.sets["cell"] == 72 and mesh.maps["edge.cells"] == ("cell", 2)
    table = mesh.get("edge.cells")
    text = stencilc.compile(
        """
        mesh plane { set edge, cell; map edge.cells -> cell[2] }
        stencil flux over plane.edge {
            in heat on cell; inc change on cell
            let f = 0.1 * (heat[cells.1] - heat[cells.0])
            change[cells.0] += f
            change[cells.1] -= f
        }
        stencil mean over plane.edge { in a on cell; out b; b = 0.5 * (a[cells.0] + a[cells.1]) }
        program spread over plane { inout heat on cell; param n: int; repeat n { heat = flux(heat, heat) } }
        """
    )
    heat = np.random.default_rng(6).random(72)
    spread = text.programs["spread"].using(device=device)
    assert spread.fields["heat"].axes == ("cell",) and spread.over == "plane"
    run = spread.start(mesh, heat=heat, n=20)
    for now in run.every(10):
        assert now["heat"].shape == (72,)
    wanted = heat.copy()
    for _ in range(20):
        change = 0.1 * (wanted[table[:, 1]] - wanted[table[:, 0]])
        wanted = wanted.copy()
        np.add.at(wanted, table[:, 0], change)
        np.subtract.at(wanted, table[:, 1], change)
    np.testing.assert_allclose(run["heat"], wanted, rtol=1e-12)
    mean = text.stencils["mean"].using(device=device)(mesh, a=heat)
    np.testing.assert_array_equal(mean, 0.5 * (heat[table[:, 0]] + heat[table[:, 1]]))
    for call, words in [
        (lambda: text.stencils["mean"](a=heat), "stencilc.mesh(path)"),
        (lambda: text.stencils["mean"](mesh, a=heat, b=heat), "`b` is given"),
        (lambda: spread.start(mesh, heat=heat[:70], n=1), "heat"),
        (lambda: stencilc.mesh(tmp_path / "none.npz"), "there is no file"),
        (lambda: mesh.get("edge.nodez"), "the mesh has no map or field `edge.nodez`"),
        (lambda: stencilc.load("laplap")(mesh, phi=heat), "grid"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)


def test_stencils_run_on_cells(tmp_path: pathlib.Path) -> None:
    command("grid", "make", "quadtree", "--size", "16x16", "-o", str(tmp_path / "quad.npz"))
    cells = stencilc.cells(tmp_path / "quad.npz")
    a = np.random.default_rng(7).random((3, len(cells)))
    s = stencilc.compile("stencil s { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }")
    one, two = (s.using(device=device)(cells, a=a) for device in ("cpu", "emulate"))
    assert one.shape == a.shape and np.isfinite(one).any()
    np.testing.assert_array_equal(one, two)


def test_dataarrays_come_back_from_runs(fields: Any) -> None:
    xarray = pytest.importorskip("xarray")
    u, v = (xarray.DataArray(own, dims=("z", "y", "x"), attrs={"units": "m"}) for own in fields)
    run = stencilc.compile(WAVE).programs["wave"].using(device="cpu").start(u=u, v=v)
    run.step(3)
    assert run["u"].dims == ("z", "y", "x") and run["v"].attrs == {"units": "m"}
    run["u"] = u
    np.testing.assert_array_equal(run["u"], u)


def test_meshes_are_made_of_arrays() -> None:
    cells = np.array([[0, 1], [1, 2], [2, 0]], dtype="int32")
    area = np.arange(3.0)
    mesh = stencilc.mesh({"edge.cells -> cell": cells, "area on cell": area})
    assert mesh.sets == {"edge": 3, "cell": 3} and mesh.path is None
    assert np.array_equal(mesh.get("edge.cells"), cells) and np.array_equal(mesh.get("area"), area)
    cells[:] = 7  # what the mesh has was copied
    assert mesh.get("edge.cells").max() == 2
    for arrays, said in (
        ({"edge.cells -> cell": cells, "set cell": 3}, "leads from edge 0, slot 0, to cell 7"),
        ({"edge.cells -> cell": cells}, "nothing says how many cells there are"),
        ({"edge.cells -> cell": cells.astype("int64"), "set cell": 9}, "holds int64"),
        ({"edge.cells -> cell": cells.astype(float), "set cell": 9}, "holds f64"),
        ({}, "no array is given"),
        ({"cells": cells}, "the name of the array `cells` does not say what it is"),
        ({"edge.cells -> cell": "none"}, "is no array"),
    ):
        with pytest.raises(stencilc.Error, match=said):
            stencilc.mesh(arrays)
    text = stencilc.compile("mesh m { set edge, cell; map edge.cells -> cell[2] }\nstencil s over m.edge { in a on cell; out b; b = a[cells.0] }")
    with pytest.raises(stencilc.Error, match="is in no file"):
        text.stencils["s"].verify(mesh)


def test_loops_whose_number_is_computed_take_as_many_steps_as_are_asked_for() -> None:
    text = stencilc.compile("""
        mesh ring { set edge, cell; map edge.cells -> cell[2] }
        stencil most over ring.cell { in heat on cell; reduce top: max; top = heat }
        stencil half over ring.cell { in heat on cell; out cool; cool = 0.5 * heat }
        program cool over ring {
            inout heat on cell; let top = most(heat); repeat if top > 2 { 3 } else { 1 } { heat = half(heat) } }
    """)
    mesh = stencilc.mesh({"edge.cells -> cell": np.array([[0, 1]], dtype="int32"), "set cell": 2})
    run = text.programs["cool"].using(device="cpu").start(mesh, heat=np.array([16.0, 8.0]))
    for left in (8.0, 4.0, 2.0):
        assert run.step(1) == 1 and run["heat"][0] == left
    assert run.step(1) == 0 and run.done == 3 and run["heat"][0] == 2

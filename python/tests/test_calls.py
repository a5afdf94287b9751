"""Stencils that are called on arrays, and what is refused."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import pytest
import stencilc
from conftest import MIX, lap, told


class Dlpack:
    """An array that has DLPack alone."""

    def __init__(self, array: Any, versioned: bool = True) -> None:
        self._array, self._versioned = array, versioned

    def __dlpack__(self, **asked: Any) -> Any:
        if not self._versioned and "max_version" in asked:
            raise TypeError("unexpected keyword argument 'max_version'")
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":
            asked.pop("max_version", None)
        return self._array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_new_outputs_are_like_what_came_in(laplap: Any, phi: Any) -> None:
    res = laplap(phi=phi)
    assert isinstance(res, np.ndarray) and res.dtype == phi.dtype and res.shape == phi.shape
    np.testing.assert_allclose(res[:, 2:-2, 2:-2], lap(lap(phi)), rtol=1e-12)
    inner = np.zeros(phi.shape, bool)
    inner[:, 2:-2, 2:-2] = True
    assert np.isnan(res[~inner]).all()
    single = laplap(phi=phi.astype("float32"))
    assert single.dtype == np.float32
    flat = laplap(phi=phi[0])
    assert flat.shape == phi[0].shape
    np.testing.assert_array_equal(flat, res[0])


def test_outputs_that_are_given_are_written_in_place(laplap: Any, phi: Any) -> None:
    res = np.full(phi.shape, 7.0)
    assert laplap(phi=phi, res=res) is res
    assert (res[:, :2] == 7).all() and (res[:, 2:-2, 2:-2] == laplap(phi=phi)[:, 2:-2, 2:-2]).all()
    # A part of a larger array, of which nothing else is touched.
    large = np.full((3, 20, 30), 5.0)
    part = large[:, 4:13, 6:17]
    with_room = np.zeros((3, 20, 30))
    with_room[:, 4:13, 6:17] = phi
    laplap(phi=with_room[:, 4:13, 6:17], res=part)
    np.testing.assert_array_equal(part[:, 2:-2, 2:-2], res[:, 2:-2, 2:-2])
    part[:, 2:-2, 2:-2] = 5
    assert (large == 5).all()


@pytest.mark.parametrize("device", ["cpu", "emulate", "native"])
def test_all_roles_on_each_device(device: str, phi: Any) -> None:
    mix = stencilc.compile(MIX).using(device=device)
    c, u = np.arange(3.0), phi + 1
    before = u.copy()
    out = mix(a=phi, c=c, s=phi[0], u=u, dt=0.5)
    assert out._fields == ("u", "b", "flat") and out.u is u
    m = 0.5 * (phi[:, :, :-2] + phi[:, :, 2:]) + c[:, None, None]
    region = np.s_[:, 1:, 1:-1]
    np.testing.assert_allclose(out.b[region], m[:, 1:], rtol=1e-15)
    np.testing.assert_allclose(u[region], before[:, :-1, 1:-1] + m[:, 1:], rtol=1e-15)
    assert (u[:, 0] == before[:, 0]).all()
    np.testing.assert_array_equal(out.flat[1:, 1:-1], 2 * phi[0, 1:, 2:])
    # The same from one array to another, and to a new one.
    new = before.copy()
    two = mix(a=phi, c=c, s=phi[0], u=(before, new), dt=0.5)
    assert two.u is new and (new[region] == u[region]).all()
    three = mix(a=phi, c=c, s=phi[0], u=(before, None), dt=0.5)
    assert (three.u[region] == u[region]).all() and np.isnan(three.u[0, 0, 0])


def test_the_bits_are_the_same_on_every_device(laplap: Any, phi: Any) -> None:
    of = [laplap.using(device=device)(phi=phi) for device in ("cpu", "emulate", "native")]
    for other in of[1:]:
        np.testing.assert_array_equal(of[0], other)
    tile = laplap.using(device="emulate", access="naive", block=(8, 4, 1))
    np.testing.assert_array_equal(of[0], tile(phi=phi))
    assert "fma" in laplap.cuda and tile.cuda != laplap.cuda


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_is_read_and_written_where_it_lies(laplap: Any, phi: Any, versioned: bool) -> None:
    expected = laplap(phi=phi)
    res = np.zeros_like(phi)
    given = Dlpack(res, versioned)
    assert laplap(phi=Dlpack(phi, versioned), res=given) is given
    np.testing.assert_array_equal(res[:, 2:-2, 2:-2], expected[:, 2:-2, 2:-2])
    turned = np.asfortranarray(phi)
    with pytest.raises(stencilc.Error) as error:
        laplap(phi=Dlpack(turned[:, ::-1], versioned))
    assert "runs backwards" in told(error)


def test_dlpack_says_what_is_read_only(laplap: Any, phi: Any) -> None:
    phi.flags.writeable = False
    try:
        phi.__dlpack__(max_version=(1, 0))
    except (BufferError, TypeError):
        pytest.skip("this NumPy hands no read-only arrays over")
    laplap(phi=Dlpack(phi))
    with pytest.raises(stencilc.Error) as error:
        laplap(phi=phi.copy(), res=Dlpack(phi))
    assert "`res` is written, and its array is read-only" in told(error)


def test_dataarrays_come_back_as_such(laplap: Any, phi: Any) -> None:
    xarray = pytest.importorskip("xarray")
    own = xarray.DataArray(
        phi, dims=("level", "lat", "lon"), coords={"lat": np.arange(9) * 2.0, "lon": np.arange(11)}, attrs={"units": "K"}
    )
    res = laplap(phi=own)
    assert res.dims == own.dims and res.attrs == own.attrs and res.name == "res"
    np.testing.assert_array_equal(res.lat, own.lat)
    np.testing.assert_array_equal(res.values, laplap(phi=phi))
    named = laplap.using(dims={"i": "lon", "j": "lat", "k": "level"})
    turned = named(phi=own.transpose("lon", "lat", "level"), res=np.zeros((3, 9, 11)))
    assert isinstance(turned, np.ndarray)
    np.testing.assert_array_equal(turned[:, 2:-2, 2:-2], res.values[:, 2:-2, 2:-2])
    with pytest.raises(stencilc.Error) as error:
        named(phi=own.rename(lon="x"))
    assert "has the dimensions ('level', 'lat', 'x')" in told(error)
    mix = stencilc.compile(MIX)
    out = mix(a=own, c=np.zeros(3), s=own[0], u=(own, None), dt=1)
    assert out.flat.dims == ("lat", "lon") and "lon" in out.flat.coords and out.u.dims == own.dims


def jax_arrays_are_made_and_never_changed(laplap: Any, phi: Any) -> None:
    import jax

    own = jax.numpy.asarray(phi.astype("float32"))
    res = laplap(phi=own)
    assert isinstance(res, jax.Array)
    np.testing.assert_array_equal(np.asarray(res), laplap(phi=np.asarray(own)))
    before = np.array(own)
    step = stencilc.compile("stencil s { inout u; u = u[i-1] }")
    moved = step(u=own)
    assert (np.asarray(own) == before).all() and (np.asarray(moved)[:, :, 1:] == before[:, :, :-1]).all()
    with pytest.raises(stencilc.Error) as error:
        laplap(phi=own, res=own + 1)
    assert "read-only" in told(error)
    with pytest.raises(stencilc.Error) as error:
        jax.jit(lambda a: laplap(phi=a))(own)
    assert "`phi`" in told(error)


# Where it is not installed, as it need not be, there is nothing to skip.
if importlib.util.find_spec("jax") is not None:
    test_jax_arrays_are_made_and_never_changed = jax_arrays_are_made_and_never_changed


class Told:
    """An array that says of itself what it is told to."""

    def __init__(self, **told: Any) -> None:
        self.__array_interface__ = {"version": 3, "shape": (3, 9, 11), "typestr": "<f8", "data": (0, False), **told}


WRONG: "dict[str, Any]" = {
    "no place": (lambda s, a: s(phi=Told(data=None)), "the array of `phi` does not tell where its numbers are"),
    "half a place": (lambda s, a: s(phi=Told(data=(-1, False))), "the array of `phi` does not tell where its numbers"),
    "no number of axes": (lambda s, a: s(phi=Told(shape="many")), "the array of `phi` does not tell where its numbers"),
    "records": (
        lambda s, a: s(phi=np.zeros((3, 9, 11), [("x", "f8"), ("y", "u1")])["x"]),
        "elements of the array of `phi` lie between each other",
    ),
    "a name": (lambda s, a: s(ph=a), "stencil `laplap` has no field or parameter `ph`\n  help: did you mean `phi`?"),
    "another name": (lambda s, a: s(temperature=a), "its fields are phi, res"),
    "nothing": (lambda s, a: s(), "an input is missing of stencil `laplap`: `phi`\n  help: give an array for each"),
    "no input": (lambda s, a: s(res=a), "an input is missing of stencil `laplap`: `phi`\n  help: given are res (3, 9, 11)"),
    "no name": (lambda s, a: s(a), "an array is given without a name\n  help: arrays are given by the names of fields: phi=..."),
    "a grid that is none": (lambda s, a: s("quad.npz", phi=a), "a str is no grid and no mesh"),
    "a list": (lambda s, a: s(phi=a.tolist()), "`phi` is a field, and its list is no array\n  help: give an array, such as"),
    "a number": (lambda s, a: s(phi=1.0), "`phi` is a field, and its float is no array"),
    "none": (lambda s, a: s(phi=None), "`phi` is a field, and its NoneType is no array"),
    "integers": (lambda s, a: s(phi=a.astype("int64")), "the array of `phi` holds int64, which no field does"),
    "int32": (lambda s, a: s(phi=a.astype("int32")), "`phi` is an array of int32, and holds float64 or float32"),
    "half": (lambda s, a: s(phi=a.astype("float16")), "the array of `phi` holds float16, which no field does"),
    "complex": (lambda s, a: s(phi=a * 1j), "the array of `phi` holds complex128"),
    "objects": (lambda s, a: s(phi=a.astype(object)), "the array of `phi` holds objects"),
    "big-endian": (lambda s, a: s(phi=a.astype(">f8")), "the array of `phi` holds big-endian float64"),
    "two precisions": (
        lambda s, a: s(phi=a, res=a.astype("float32")),
        "`phi` is an array of float64, and `res` of float32\n  help: fields of type `real` have one precision",
    ),
    "another precision": (
        lambda s, a: s.using(precision="f32")(phi=a), "`phi` is an array of float64, and f32 is asked for"
    ),
    "axes": (lambda s, a: s(phi=a[0, 0]), "`phi` has the shape (11), expected (nk, nj, ni)"),
    "a shape": (lambda s, a: s(phi=a, res=np.zeros((3, 9, 12))), "`phi` has 11 cells along i, `res` has 12"),
    "turned": (lambda s, a: s(phi=a, res=np.zeros((11, 9, 3))), "another order than (nk, nj, ni)"),
    "too small": (lambda s, a: s(phi=a[:, :4]), "4"),
    "itself": (lambda s, a: s(phi=a, res=a), "the array that `res` is written to overlaps that of `phi`"),
    "a part of itself": (lambda s, a: s(phi=a[:, 1:], res=a[:, :-1]), "overlaps that of `phi`"),
    "every second": (lambda s, a: s(phi=a[:, :, ::2]), "do not follow each other along i"),
    "backwards": (lambda s, a: s(phi=a[:, :, ::-1]), "an axis of the array of `phi` runs backwards"),
    "other rows": (
        lambda s, a: s(phi=np.zeros((3, 9, 12))[:, :, :11], res=np.zeros((3, 9, 11))),
        "levels of `res` are 99 elements apart, those of `phi` 108",
    ),
    "spread out": (lambda s, a: s(phi=a, res=np.broadcast_to(a[:1], a.shape)), "read-only"),
    "a tuple": (lambda s, a: s(phi=(a, a)), "`phi` is given a tuple, and is an `in` field"),
    "a device": (lambda s, a: s.using(device="gpu"), "there is no device `gpu`\n  help: a device is cpu,"),
    "no such GPU": (lambda s, a: s.using(device="cuda:99999999999"), "help: GPUs have the numbers 0 to 1023"),
    "a number that is too large": (
        lambda s, a: stencilc.compile("stencil s { in a; param p: real; out b; b = p * a }")(a=a.astype("float32"), p=1e300),
        "`1e300`",
    ),
    "no GPU's array": (lambda s, a: s.using(device="cuda")(phi=a), "cuda:0 is to compute, and `phi` is in the host's"),
    "an option": (lambda s, a: s.using(acces="tile"), "acces"),
    "an access": (lambda s, a: s.using(access="tiles"), "tile"),
    "a storage": (lambda s, a: s.using(device="emulate", storage="compressed")(phi=a), "plain arrays in rows"),
    "a stream": (lambda s, a: s.bind(phi=a)(stream="x"), "a str is no stream"),
    "a grid": (lambda s, a: s.explain(grid=(1, 2, 3, 4)), "(1, 2, 3, 4) is not the shape of a grid"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told(what: str, laplap: Any, phi: Any) -> None:
    call, expected = WRONG[what]
    with pytest.raises(stencilc.Error) as error:
        call(laplap, phi)
    text = told(error)
    assert expected in text, text


def test_outputs_that_may_not_be_written_are_refused(laplap: Any, phi: Any) -> None:
    res = np.zeros_like(phi)
    res.flags.writeable = False
    with pytest.raises(stencilc.Error) as error:
        laplap(phi=phi, res=res)
    assert "`res` is written, and its array is read-only\n  help: give one that may be written" in told(error)
    move = stencilc.compile("stencil s { inout u; u = u[i-1] }")
    with pytest.raises(stencilc.Error) as error:
        move(u=res)
    assert "give two: u=(u, new)" in told(error)


def test_parameters_are_checked() -> None:
    s = stencilc.compile("stencil s { in a; param x: real; param n: int = 2; param is: bool = true; out b; b = x * a }")
    a = np.ones((1, 4, 5))
    assert s(a=a, x=2)[0, 0, 0] == 2 and s(a=a, x=np.float32(0.5), n=np.int64(3), **{"is": False})[0, 0, 0] == 0.5
    for given, expected in [
        ({}, "`x`"),
        ({"x": "2"}, "'2' is no value for the parameter `x`\n  help: give a number such as 0.5"),
        ({"x": float("nan")}, "x"),
        ({"x": 1, "n": 2.5}, "2.5 is no value for the parameter `n`\n  help: give a whole number"),
        ({"x": 1, "n": 1 << 40}, "n"),
        ({"x": 1, "is": 1}, "1 is no value for the parameter `is`\n  help: give True or False"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            s(a=a, **given)
        assert expected in told(error)


def test_truth_values_are_looked_at() -> None:
    s = stencilc.compile("stencil s { in a; in mask: bool; out b; b = if mask { a } else { 0.0 } }")
    a, mask = np.ones((1, 4, 5)), np.arange(20).reshape(1, 4, 5) % 2 == 0
    np.testing.assert_array_equal(s(a=a, mask=mask), mask * 1.0)
    with pytest.raises(stencilc.Error) as error:
        s(a=a, mask=np.full((1, 4, 5), 255, np.uint8).view(bool))
    assert "holds 255 as its truth value 0" in told(error)
    with pytest.raises(stencilc.Error) as error:
        s(a=a, mask=mask.astype("uint8"))
    assert "holds uint8" in told(error)


def test_levels_may_be_fastest(phi: Any, laplap: Any) -> None:
    turned = np.asfortranarray(phi).copy(order="F")
    by_levels = np.ascontiguousarray(phi.transpose(1, 2, 0)).transpose(2, 0, 1)
    res = np.empty((9, 11, 3)).transpose(2, 0, 1)
    laplap.using(device="emulate")(phi=by_levels, res=res)
    np.testing.assert_array_equal(res[:, 2:-2, 2:-2], laplap(phi=phi)[:, 2:-2, 2:-2])
    del turned


def test_nothing_is_told_that_is_not_asked_for(laplap: Any, phi: Any, capfd: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        laplap(phi=phi)
    assert capfd.readouterr() == ("", "")

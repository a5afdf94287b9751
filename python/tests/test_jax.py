"""Stencils within programs that jax compiles."""

from __future__ import annotations

import pathlib
import re
from typing import Any, Iterator

import numpy as np
import pytest
import stencilc
from conftest import LAPLAP, MIX, told
from xla import FUNCTIONS

jax = pytest.importorskip("jax", reason="no jax")
jnp = jax.numpy

#: Interfaces of levels, planes and numbers of every type.
TYPES = """
stencil types {
    in a; in edge on (i, j, k+1); in n: int; in flag: bool; in s on (i, j); param alpha: real = 0.5; param twice: bool = false
    out b; out m: int; out up on (i, j, k+1); out no: bool; out t on (i, j)
    b = if flag { alpha * a } else { a }
    m = n[i-1] + 1
    up = if twice { 2 * edge } else { edge }
    no = !flag[j+1]
    t = 3 * s
}
"""


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    # Arrays are on the CPU, also where there is a GPU, which tests of its own look at.
    with jax.default_device(jax.devices("cpu")[0]):
        yield
    jax.config.update("jax_enable_x64", before)


def same(one: Any, two: Any) -> None:
    assert isinstance(one, jax.Array)
    assert str(one.dtype) == str(two.dtype)
    np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("device", ["cpu", "native", "emulate"])
def test_compiled_programs_call_stencils(phi: Any, dtype: str, device: str) -> None:
    phi = phi.astype(dtype)
    laplap = stencilc.compile(LAPLAP)
    op = laplap.using(device=device).jax
    same(jax.jit(lambda own: op(own + 1) * 2)(phi), 2 * laplap(phi=phi + 1))
    same(jax.jit(lambda own: op(phi=own))(phi), laplap(phi=phi))
    same(op(phi), laplap(phi=phi))
    same(jax.jit(op)(phi[0]), laplap(phi=phi[0]))
    # Again, by what was compiled: other numbers, and the result of one is what another reads.
    twice = jax.jit(lambda own: op(jnp.nan_to_num(op(own))))
    for number in range(3):
        once = np.nan_to_num(laplap(phi=phi * number))
        same(twice(phi * number), laplap(phi=once))


def test_numbers_are_single_unless_double_is_asked_for(phi: Any) -> None:
    jax.config.update("jax_enable_x64", False)
    op = stencilc.compile(LAPLAP).jax
    same(op(phi), stencilc.compile(LAPLAP)(phi=phi.astype("float32")))
    double = stencilc.compile("stencil s { in a; out b: f64; b = a }").jax
    with pytest.raises(stencilc.Error) as error:
        double(phi)
    assert "`b` is an array of float64, and jax makes none" in told(error)
    assert "jax_enable_x64" in told(error)


def test_several_outputs_parameters_and_what_is_changed(phi: Any) -> None:
    mix = stencilc.compile(MIX)
    a, c, s, u = (jnp.asarray(own) for own in (phi, phi[:, 0, 0].copy(), phi[0], phi))
    op = mix.jax
    found = jax.jit(lambda *own: op(*own, dt=0.25))(a, c, s, u)
    same(u, phi)
    expected = mix(a=phi, c=phi[:, 0, 0].copy(), s=phi[0], u=(phi, None), dt=0.25)
    assert isinstance(found, tuple) and len(found) == len(expected) == 3
    for one, two in zip(found, expected):
        same(one, two)
    by_name = jax.jit(lambda own: op(own["a"], own["c"], u=own["u"], s=own["s"], dt=own["dt"]), static_argnums=())
    with pytest.raises(stencilc.Error, match="`dt` is traced"):
        by_name(dict(a=a, c=c, s=s, u=u, dt=0.5))
    static = jax.jit(lambda a, dt: op(a, c, s, u, dt=dt), static_argnames="dt")
    for dt in (0.5, 0.25, 0.5):
        same(static(a, dt=dt)[0], mix(a=phi, c=phi[:, 0, 0].copy(), s=phi[0], u=(phi, None), dt=dt)[0])
    same(static(a, dt=0.25)[2], expected[2])
    same(op(a, c, s, u, dt=jnp.float32(0.25))[1], expected[1])


def test_shapes_and_types(phi: Any) -> None:
    types = stencilc.compile(TYPES)
    n = np.arange(phi.size, dtype="int32").reshape(phi.shape)
    edge = np.random.default_rng(2).random((phi.shape[0] + 1, *phi.shape[1:]))
    given = (phi, edge, n, n % 2 == 0, phi[0])
    found = jax.jit(lambda *own: types.jax(*own, alpha=0.25, twice=True))(*given)
    expected = types(a=phi, edge=edge, n=n, flag=n % 2 == 0, s=phi[0], alpha=0.25, twice=True)
    assert [own.shape for own in found] == [own.shape for own in expected]
    for one, two in zip(found, expected):
        same(one, two)
    # What is not computed is NaN, 0 or False.
    assert (np.asarray(found[1])[:, :, 0] == 0).all() and not np.asarray(found[3])[:, -1].any()
    shapes = jax.eval_shape(lambda *own: types.jax(*own), *given)
    assert [own.shape for own in shapes] == [own.shape for own in found]


def test_steps_within_a_scan(phi: Any) -> None:
    step = stencilc.compile("stencil step { inout u; in c on (k); u = u[i-1] + c * u[j+1] }").jax
    c = phi[:, 0, 0].copy()

    @jax.jit
    def run(u: Any) -> Any:
        return jax.lax.scan(lambda u, own: (jnp.nan_to_num(step(u, own * c)), jnp.sum(u)), u, jnp.arange(1.0, 6.0))

    last, sums = run(phi)
    u, plain, expected = phi, stencilc.compile("stencil step { inout u; in c on (k); u = u[i-1] + c * u[j+1] }"), []
    for number in range(1, 6):
        expected.append(np.asarray(jnp.sum(u)))
        u = np.nan_to_num(plain(u=(u, None), c=number * c))
    same(last, u)
    np.testing.assert_allclose(np.asarray(sums), expected, rtol=1e-12)


def test_many_at_once(phi: Any) -> None:
    mix = stencilc.compile(MIX)
    many = np.random.default_rng(3).random((4, *phi.shape))
    c, s = phi[:, 0, 0].copy(), phi[0]
    op = mix.jax
    found = jax.jit(jax.vmap(lambda a, u: op(a, c, s, u, dt=0.5), in_axes=(0, 3)))(many, np.moveaxis(many, 0, 3))
    for number in range(4):
        expected = mix(a=many[number], c=c, s=s, u=(many[number], None), dt=0.5)
        for one, two in zip(found, expected):
            same(one[number], two)


def test_a_derivative_is_given_or_an_error(phi: Any) -> None:
    laplap = stencilc.compile(LAPLAP)
    op = laplap.jax
    for ask in (jax.grad, jax.jacfwd):
        with pytest.raises(stencilc.Error) as error:
            ask(lambda own: jnp.nansum(op(own)))(phi)
        assert "`laplap` has no derivative" in told(error) and "jax.custom_vjp" in told(error)
    # What it does not depend on has one.
    assert jax.grad(lambda own: own * jnp.nansum(op(phi)))(2.0) == pytest.approx(np.nansum(laplap(phi=phi)))
    linear = jax.custom_vjp(lambda own: jnp.nan_to_num(op(own)))
    # The stencil is its own transpose, as far as it reaches no edge.
    linear.defvjp(lambda own: (linear(own), None), lambda _, back: (jnp.nan_to_num(op(back)),))
    inside = np.zeros((1, 14, 14))
    inside[0, 6:8, 6:8] = np.random.default_rng(4).random((2, 2))
    found = jax.grad(lambda own: 0.5 * jnp.sum(linear(own) ** 2))(jnp.asarray(inside))
    expected = np.nan_to_num(laplap(phi=np.nan_to_num(laplap(phi=inside))))
    same(found, expected)


def test_the_same_is_one(phi: Any) -> None:
    one, two = stencilc.compile(LAPLAP), stencilc.compile(LAPLAP)
    text = jax.jit(one.jax).lower(phi).as_text()
    assert text == jax.jit(two.jax).lower(phi).as_text()
    assert "laplap" in repr(one.jax) and "phi" in repr(one.jax)
    other = jax.jit(stencilc.compile(LAPLAP.replace("4*a", "5*a")).jax)
    same(other(phi), stencilc.compile(LAPLAP.replace("4*a", "5*a"))(phi=phi))


def test_what_jax_cannot_call_is_told(phi: Any) -> None:
    laplap, given = stencilc.compile(LAPLAP), jnp.asarray(phi)
    for call, words in [
        (lambda: stencilc.load("airfoil").stencils["res_calc"].jax, "runs over a mesh"),
        (lambda: laplap.using(gpus=2).jax, "`gpus` is for what is started"),
        (lambda: stencilc.compile("stencil s { out b; b = 1 }").jax, "reads no field"),
        (lambda: laplap.jax(given, given), "reads 1 field, and is given 2 arrays"),
        (lambda: laplap.jax(given, phi=given), "`phi` is given twice"),
        (lambda: laplap.jax(), "an input is missing"),
        (lambda: laplap.jax("phi"), "jax makes no array"),
        (lambda: laplap.jax(ph=given), "did you mean `phi`"),
        (lambda: laplap.jax(given, res=given), "no field or parameter `res`"),
        (lambda: laplap.jax(given.astype("int32")), "`phi` is an array of int32, and holds float64 or float32"),
        (lambda: laplap.jax(given.astype("int64")), "int64, which no field does"),
        (lambda: laplap.jax(given[:, :3]), "at least 5 are needed"),
        (lambda: laplap.jax(given[:0, :0, :0]), "grid"),
        (lambda: laplap.jax(given[None]), "shape"),
        (lambda: stencilc.compile(MIX).jax(given, given[:, 0, 0], given[0], given), "`dt`"),
        (lambda: stencilc.compile(MIX).jax(given, given[:, 0, 0], given[0], given, dt="x"), "'x' is no value"),
        (lambda: stencilc.compile(MIX).jax(given, given[:, 0, 0], given[0], given, dt=float("nan")), "dt"),
        (lambda: jax.jit(lambda own: laplap(phi=own))(phi), "call what `stencil.jax` gives"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)
    if jax.default_backend() == "cpu":
        with pytest.raises(Exception, match="cuda:0 is to compute, and the arrays are in the host's memory"):
            jax.block_until_ready(laplap.using(device="cuda").jax(given))


def test_functions_stand_where_the_header_has_them() -> None:
    jaxlib = pytest.importorskip("jaxlib")
    header = pathlib.Path(jaxlib.__file__).parent / "include/xla/ffi/api/c_api.h"
    names = re.findall(r"_XLA_FFI_API_STRUCT_FIELD\(XLA_FFI_(\w+)\)", header.read_text())
    # Older ones do not tell the number of a GPU.
    found = {name: names.index(name) for name in FUNCTIONS if name in names}
    assert len(found) >= 2 and found == {name: FUNCTIONS[name] for name in found}

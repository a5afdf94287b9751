"""Stencils as operators of torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import stencilc
from conftest import LAPLAP, MIX, told

torch = pytest.importorskip("torch", reason="no torch")

#: Interfaces of levels, planes and numbers of every type.
TYPES = """
stencil types {
    in a; in edge on (i, j, k+1); in n: int; in flag: bool; param alpha: real = 0.5; param twice: bool = false
    out b; out m: int; out up on (i, j, k+1)
    b = if flag { alpha * a } else { a }
    m = n + 1
    up = if twice { 2 * edge } else { edge }
}
"""


def compiled(work: Any) -> Any:
    """What dynamo and AOTAutograd make of it, which ask operators for shapes; without a compiler for what is left."""
    torch._dynamo.reset()
    return torch.compile(work, backend="aot_eager", fullgraph=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_programs_call_stencils(phi: Any, dtype: str) -> None:
    given = torch.from_numpy(phi.astype(dtype))
    laplap = stencilc.compile(LAPLAP)
    op = laplap.torch
    torch.library.opcheck(op, (given.clone(),), test_utils=("test_schema", "test_faketensor"))
    found = compiled(lambda own: torch.nan_to_num(op(own + 1)) * 2)(given)
    expected = torch.nan_to_num(laplap(phi=given + 1)) * 2
    assert found.dtype == given.dtype and torch.equal(found, expected)
    assert torch.equal(compiled(lambda own: torch.nan_to_num(op(phi=own + 1)) * 2)(given), expected)
    plane = given[0].contiguous()
    assert torch.equal(compiled(lambda own: torch.nan_to_num(op(own)))(plane), torch.nan_to_num(laplap(phi=plane)))


def test_operators_are_made_once(phi: Any) -> None:
    one, same = stencilc.compile(LAPLAP), stencilc.compile(LAPLAP)
    assert one.torch is same.torch is one.stencil.torch
    native = one.using(device="emulate").torch
    assert native is not one.torch
    given = torch.from_numpy(phi)
    assert torch.equal(torch.nan_to_num(native(given)), torch.nan_to_num(one.torch(given)))
    other = stencilc.compile(LAPLAP.replace("4*a", "5*a"))
    assert not torch.equal(torch.nan_to_num(other.torch(given)), torch.nan_to_num(one.torch(given)))


def test_several_outputs_parameters_and_what_is_changed(phi: Any) -> None:
    mix = stencilc.compile(MIX)
    a, c, s, u = (torch.from_numpy(own.copy()) for own in (phi, phi[:, 0, 0], phi[0], phi))
    before = u.clone()
    op = mix.torch
    found = compiled(lambda a, c, s, u: [torch.nan_to_num(own) for own in op(a, c, s, u, dt=0.25)])(a, c, s, u)
    assert torch.equal(u, before)
    expected = mix(a=a, c=c, s=s, u=(u, None), dt=0.25)
    assert len(found) == len(expected) == 3
    for one, two in zip(found, expected):
        assert one.shape == two.shape and torch.equal(one, torch.nan_to_num(two))
    torch.library.opcheck(mix.torch, (a, c, s, u), {"dt": 0.25}, test_utils=("test_schema", "test_faketensor"))


def test_shapes_and_types_are_known_before(phi: Any) -> None:
    types = stencilc.compile(TYPES)
    a, n = torch.from_numpy(phi), torch.arange(phi.size, dtype=torch.int32).reshape(phi.shape)
    edge = torch.from_numpy(np.random.default_rng(2).random((phi.shape[0] + 1, *phi.shape[1:])))
    given = (a, edge, n, n % 2 == 0)
    torch.library.opcheck(types.torch, given, {"twice": True}, test_utils=("test_schema", "test_faketensor"))
    op = types.torch
    b, m, up = compiled(lambda *own: op(*own, alpha=0.25, twice=True))(*given)
    assert (b.dtype, m.dtype, up.shape) == (torch.float64, torch.int32, edge.shape)
    assert torch.equal(up[:-1], 2 * edge[:-1]) and torch.equal(m, n + 1)
    assert torch.equal(b, torch.where(n % 2 == 0, 0.25 * a, a))


def test_shapes_may_stay_open(phi: Any) -> None:
    op = stencilc.compile(LAPLAP).torch
    torch._dynamo.reset()
    work = torch.compile(lambda own: torch.nan_to_num(op(own)), backend="aot_eager", fullgraph=True, dynamic=True)
    for size in (9, 12, 17):
        given = torch.rand(3, size, 11, dtype=torch.float64)
        assert torch.equal(work(given), torch.nan_to_num(op(given)))


def test_what_is_no_operator_is_told(phi: Any) -> None:
    laplap = stencilc.compile(LAPLAP)
    given = torch.from_numpy(phi)
    for call, words in [
        (lambda: stencilc.load("airfoil").stencils["res_calc"].torch, "runs over a mesh"),
        (lambda: laplap.using(gpus=2).torch, "`gpus` is for what is started"),
        (lambda: stencilc.compile("stencil s { out b; b = 1 }").torch, "reads no field"),
        (lambda: laplap.torch(given.to(torch.int64)), "int64"),
        (lambda: laplap.torch(given[:, :, ::2]), "do not follow each other along i"),
    ]:
        with pytest.raises(stencilc.Error) as error:
            call()
        assert words in told(error)
    with pytest.raises(RuntimeError, match="autograd"):
        laplap.torch(given.requires_grad_()).nansum().backward()

"""Launches a second of one small kernel, from Python: stencilc, a RawKernel of CuPy's, and a kernel of Triton's, in one process.

    python bench/launches.py

The kernel is the Laplacian of a Laplacian on 64x64x8, in f32, which takes the GPU two or three microseconds: what is measured is what a call costs the
host. Each is called often without waiting, and waited for once; the best of some rounds counts, and all of them are compared first.
"""

import time

import cupy as cp
import numpy as np
import stencilc
import torch
import triton
import triton.language as tl

NI, NJ, NK = 64, 64, 8
CALLS, ROUNDS = 5000, 7

STENCIL = """
stencil laplap { in phi; out res; let lap = l(phi); res = l(lap) }
fn l(a) = 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]
"""

CUDA = r"""
extern "C" __global__ void laplap(const float *__restrict__ phi, float *__restrict__ res, int ni, int nj, int nk) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z;
  if (i < 2 || j < 2 || i >= ni - 2 || j >= nj - 2) return;
  const float *p = phi + ((long long)k * nj + j) * ni + i;
  auto lap = [&](int at) { return 4.0f * p[at] - p[at - 1] - p[at + 1] - p[at - ni] - p[at + ni]; };
  res[((long long)k * nj + j) * ni + i] = 4.0f * lap(0) - lap(-1) - lap(1) - lap(-ni) - lap(ni);
}
"""


@triton.jit
def lap(p, at, ni, mask):
    return (4.0 * tl.load(p + at, mask) - tl.load(p + at - 1, mask) - tl.load(p + at + 1, mask)
            - tl.load(p + at - ni, mask) - tl.load(p + at + ni, mask))


@triton.jit
def laplap_triton(phi, res, ni, nj, nk, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i, j = at % ni, at // ni % nj
    mask = (at < ni * nj * nk) & (i >= 2) & (j >= 2) & (i < ni - 2) & (j < nj - 2)
    value = (4.0 * lap(phi, at, ni, mask) - lap(phi, at - 1, ni, mask) - lap(phi, at + 1, ni, mask)
             - lap(phi, at - ni, ni, mask) - lap(phi, at + ni, ni, mask))
    tl.store(res + at, value, mask)


def best(call, wait):
    """Microseconds that a call takes the host, and that it takes until all are done."""
    for _ in range(100):
        call()
    wait()
    host, done = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        host.append(time.perf_counter() - start)
        wait()
        done.append(time.perf_counter() - start)
    return 1e6 * min(host) / CALLS, 1e6 * min(done) / CALLS


def main():
    numbers = np.random.default_rng(0).random((NK, NJ, NI), dtype=np.float32)
    there, there_torch = cp.asarray(numbers), torch.from_numpy(numbers).cuda()
    laplap = stencilc.compile(STENCIL)
    calls = {}

    res = cp.zeros_like(there)
    calls["stencilc, bound, CuPy's arrays"] = (laplap.bind(phi=there, res=res), res)
    res_torch = torch.zeros_like(there_torch)
    calls["stencilc, bound, torch's arrays"] = (laplap.bind(phi=there_torch, res=res_torch), res_torch)
    res_called = cp.zeros_like(there)
    calls["stencilc, called by name"] = (lambda: laplap(phi=there, res=res_called), res_called)

    raw, res_raw = cp.RawKernel(CUDA, "laplap", options=("-std=c++14", "--fmad=false")), cp.zeros_like(there)
    grid, block = ((NI + 31) // 32, (NJ + 3) // 4, NK), (32, 4)
    arguments = (there, res_raw, np.int32(NI), np.int32(NJ), np.int32(NK))
    calls["CuPy's RawKernel"] = (lambda: raw(grid, block, arguments), res_raw)

    res_triton = torch.zeros_like(there_torch)
    blocks = ((NI * NJ * NK + 255) // 256,)
    calls["Triton"] = (lambda: laplap_triton[blocks](there_torch, res_triton, NI, NJ, NK, BLOCK=256), res_triton)

    expected = None
    for name, (call, result) in calls.items():
        call()
        torch.cuda.synchronize()
        cp.cuda.Device().synchronize()
        own = cp.asnumpy(result) if isinstance(result, cp.ndarray) else result.cpu().numpy()
        inner = own[:, 2:-2, 2:-2]
        expected = inner if expected is None else expected
        assert np.allclose(inner, expected, rtol=1e-5, atol=1e-4), name

    def wait():
        torch.cuda.synchronize()
        cp.cuda.Device().synchronize()

    print(f"{'':34} us a call on the host   until done   calls a second")
    for name, (call, _) in calls.items():
        host, done = best(call, wait)
        print(f"{name:34} {host:22.2f} {done:12.2f} {1e6 / done:16,.0f}")


if __name__ == "__main__":
    main()

"""The operators of `stencilc run dynamical_core` against NumPy, to the last bit.

    python3 examples/dynamical_core.py path/to/stencilc

in double precision, in mixed precision, and in single precision. NumPy from 2.0 on, whose rules for numbers of several
precisions are those of the language: what is written takes the precision of what it meets.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LEVELS = 9
STENCILC = str(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else "stencilc"


class Case:
    """A mesh, random numbers, and the types `vp` and `wp` of one way to compute."""

    def __init__(self, folder, vp, wp, options):
        self.folder, self.vp, self.wp, self.options = folder, vp, wp, options
        self.random, self.failed = np.random.default_rng(5), 0
        subprocess.run([STENCILC, "mesh", "make", "icosahedral", "--size", "R2B2", "-o", "made.npz"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        mesh = dict(np.load(folder / "made.npz"))
        self.map = {name.split(" -> ")[0]: table for name, table in mesh.items() if " -> " in name}
        self.sizes = [int(mesh[f"set {name}"]) for name in ("vertex", "edge", "cell")]
        mesh["zone on cell"] = np.ones(self.sizes[2], np.int32)
        np.savez(folder / "mesh.npz", **mesh)

    def draw(self, kind, *shape, low=-1, high=1):
        return (self.random.random(shape) * (high - low) + low).astype(kind)

    def run(self, name, inputs, expected, first=0):
        """Runs a stencil, and compares what it writes from a level on."""
        call = [STENCILC, "run", "dynamical_core", "--stencil", name, "--mesh", "mesh.npz", "--levels", str(LEVELS)]
        call += ["--device", "cpu", "--contract", "off", *self.options]
        for field, array in inputs.items():
            np.save(self.folder / f"{field}.npy", array)
            call += ["--in", f"{field}={field}.npy"]
        for field in expected:
            call += ["--out", f"{field}={field}_out.npy"]
        subprocess.run(call, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        for field, array in expected.items():
            found = np.load(self.folder / f"{field}_out.npy")
            same = found.dtype == array.dtype and found.shape == array.shape
            same = same and np.array_equal(found[first:], array[first:], equal_nan=True)
            self.failed += not same
            print(f"  {name} {field}: {'equal' if same else 'DIFFERENT'}")


def total(terms):
    """The terms from left to right."""
    terms = list(terms)
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def wind(case):
    vp, wp, (_, edges, cells) = case.vp, case.wp, case.sizes
    around, of_cell = case.map["edge.edges"], case.map["cell.edges"]
    vn, rbf = case.draw(wp, LEVELS, edges), case.draw(wp, edges, 4)
    ddxn, ddxt = case.draw(vp, LEVELS, edges), case.draw(vp, LEVELS, edges)
    vt = total(rbf[:, slot] * vn[:, around[:, slot]] for slot in range(4)).astype(vp)
    concorr = (vn * ddxn).astype(vp) + vt * ddxt
    case.run("tangential", {"vn": vn, "rbf": rbf, "ddxn": ddxn, "ddxt": ddxt}, {"vt": vt, "concorr": concorr})

    bln, weight = case.draw(wp, cells, 3), case.draw(vp, LEVELS, cells)
    wq = [case.draw(vp, cells) for _ in range(3)]
    on_cells = total(bln[:, slot] * concorr[:, of_cell[:, slot]] for slot in range(3)).astype(vp)
    result = np.zeros((LEVELS + 1, cells), vp)
    for k in range(3, LEVELS):
        result[k] = weight[k] * on_cells[k] + (vp(1) - weight[k]) * on_cells[k - 1]
    result[LEVELS] = total(wq[n] * on_cells[LEVELS - 1 - n] for n in range(3))
    inputs = {"concorr": concorr, "bln": bln, "wgtfac": weight, "wq1": wq[0], "wq2": wq[1], "wq3": wq[2]}
    case.run("contravariant", inputs, {"w_concorr": result}, first=1)


def diamonds(case):
    vp, wp, (vertices, edges, _), diamond = case.vp, case.wp, case.sizes, case.map["edge.diamond"]
    u, v = case.draw(vp, LEVELS, vertices), case.draw(vp, LEVELS, vertices)
    pnv1, pnv2, dnv1, dnv2 = (case.draw(wp, edges, 4) for _ in range(4))
    nabla2, inv_vv, inv_pe = case.draw(wp, LEVELS, edges), case.draw(wp, edges), case.draw(wp, edges)
    along = lambda slot, a, b: u[:, diamond[:, slot]] * a[:, slot] + v[:, diamond[:, slot]] * b[:, slot]
    tangential, normal = along(0, pnv1, pnv2) + along(1, pnv1, pnv2), along(2, pnv1, pnv2) + along(3, pnv1, pnv2)
    nabla = 4 * ((normal - 2 * nabla2) * (inv_vv * inv_vv) + (tangential - 2 * nabla2) * (inv_pe * inv_pe))
    winds = {"u": u, "v": v, "pnv1": pnv1, "pnv2": pnv2, "inv_vv": inv_vv, "inv_pe": inv_pe}
    case.run("nabla4", winds | {"nabla2": nabla2}, {"nabla": nabla.astype(vp)})

    turn, fac = case.draw(wp, edges), case.draw(vp, LEVELS)
    n, t = lambda slot: along(slot, pnv1, pnv2), lambda slot: along(slot, dnv1, dnv2)
    shear = (n(1) - n(0)) * turn * inv_pe + (t(3) - t(2)) * inv_vv
    strain = (n(3) - n(2)) * inv_vv - (t(1) - t(0)) * turn * inv_pe
    kh = np.minimum(vp(0.1), fac[:, None] * np.sqrt(shear * shear + strain * strain).astype(vp))
    case.run("smagorinsky", winds | {"dnv1": dnv1, "dnv2": dnv2, "turn": turn, "fac": fac}, {"kh": kh})


def implicit(case):
    vp, wp, cells = case.vp, case.wp, case.sizes[2]
    alpha, theta_ic = case.draw(vp, LEVELS + 1, cells, low=0.1, high=0.2), case.draw(vp, LEVELS + 1, cells, low=1, high=2)
    beta, exner = case.draw(vp, LEVELS, cells, low=0.1, high=0.2), case.draw(vp, LEVELS, cells)
    dz, w_expl = case.draw(vp, LEVELS, cells, low=9000, high=10000), case.draw(wp, LEVELS, cells)
    gamma = (wp(10) * wp(1004.64) * theta_ic[:LEVELS] / dz).astype(vp)
    one, zero = np.ones(cells, vp), np.zeros(cells, vp)
    q, y, w = np.zeros((LEVELS, cells), vp), np.zeros((LEVELS, cells), wp), np.zeros((LEVELS, cells), wp)
    for k in range(LEVELS):
        a = -gamma[k] * beta[k - 1] * alpha[k] if k > 0 else zero
        c = -gamma[k] * beta[k] * alpha[k + 1] if k < LEVELS - 1 else zero
        b = vp(1) + gamma[k] * alpha[k] * (beta[k - 1] + beta[k]) if k > 0 else one
        g = vp(1) / (b + a * q[k - 1]) if k > 0 else one
        q[k] = -c * g
        y[k] = (w_expl[k] - gamma[k] * exner[k] - a * y[k - 1]) * g if k > 0 else 0
    for k in reversed(range(LEVELS)):
        w[k] = y[k] + w[k + 1] * q[k] if k < LEVELS - 1 else y[k]
    inputs = {"alpha": alpha, "beta": beta, "exner": exner, "theta_ic": theta_ic, "dz": dz, "w_expl": w_expl}
    case.run("solve_w", inputs, {"w": w})


def vertical(case):
    wp, cells = case.wp, case.sizes[2]
    q, dz = case.draw(wp, LEVELS, cells), case.draw(wp, LEVELS, cells, low=5, high=9)
    w, inner = case.draw(wp, LEVELS + 1, cells, low=-2, high=2), range(1, LEVELS - 1)
    a, b = q.copy(), q.copy()
    a[1:-1], b[1:-1] = q[:-2], q[2:]
    least = np.minimum(np.abs(0.5 * (b - a)), np.minimum(2 * np.abs(q - a), 2 * np.abs(b - q)))
    slope = np.where((b - q) * (q - a) > 0, np.copysign(least, b - a), wp(0))
    face = q.copy()
    for k in range(1, LEVELS):
        face[k] = 0.5 * (q[k - 1] + q[k])
        if k > 1 and k in inner:
            face[k] = face[k] - (slope[k] - slope[k - 1]) / 6
    below = np.concatenate([face[1:], q[-1:]])
    extreme = (below - q) * (q - face) <= 0
    l, r = np.where(extreme, q, face), np.where(extreme, q, below)
    q6 = 6 * q - 3 * (l + r)
    upwind, ppm = np.zeros((LEVELS + 1, cells), wp), np.zeros((LEVELS + 1, cells), wp)
    for k in range(1, LEVELS):
        down, up = w[k] * wp(1) / dz[k], -w[k] * wp(1) / dz[k - 1]
        from_below = l[k] + 0.5 * down * ((r[k] - l[k]) + q6[k] * (1 - down * 2 / 3))
        from_above = r[k - 1] - 0.5 * up * ((r[k - 1] - l[k - 1]) - q6[k - 1] * (1 - up * 2 / 3))
        upwind[k] = np.where(w[k] > 0, w[k] * q[k], w[k] * q[k - 1])
        ppm[k] = np.where(w[k] > 0, w[k] * from_below, w[k] * from_above)
    case.run("vertical_fluxes", {"q": q, "dz": dz, "w": w}, {"upwind": upwind, "ppm": ppm})


def horizontal(case):
    vp, wp, (_, edges, cells), beyond = case.vp, case.wp, case.sizes, case.map["cell.cells"]
    vcoef, geofac, own = case.draw(wp, LEVELS, cells, 3), case.draw(wp, cells, 3), case.draw(wp, cells)
    diffcoef, theta, temp = (case.draw(wp, LEVELS, cells) for _ in range(3))
    level, levels = np.arange(LEVELS)[:, None], np.arange(LEVELS)[:, None, None]
    below = case.random.integers(-2, 3, (LEVELS, cells, 3))
    below = (np.clip(below + levels, 0, LEVELS - 1) - levels).astype(np.int32)
    mask = case.random.integers(0, 2, (LEVELS, cells)).astype(np.int32)
    there = [theta[level + below[:, :, slot], beyond[:, slot]] for slot in range(3)]
    mixed = [vcoef[:, :, slot] * there[slot] + (1 - vcoef[:, :, slot]) * there[slot] for slot in range(3)]
    changed = temp + diffcoef * (theta * own + total(geofac[:, slot] * mixed[slot] for slot in range(3)))
    inputs = {"vcoef": vcoef, "geofac": geofac, "own": own, "diffcoef": diffcoef, "below": below, "mask": mask}
    case.run("horizontal_diffusion", inputs | {"theta": theta, "temp": temp}, {"temp": np.where(mask > 0, changed, temp)})

    div, scal = case.draw(vp, LEVELS, cells), case.draw(vp, LEVELS)
    inv_vv, vn, of_edge = case.draw(wp, edges), case.draw(wp, LEVELS, edges), case.map["edge.cells"]
    lap = div - total(div[:, beyond[:, slot]] for slot in range(3)) / vp(3)
    damped = vn + scal[:, None] * ((lap[:, of_edge[:, 1]] - lap[:, of_edge[:, 0]]) * inv_vv)
    case.run("damping", {"div": div, "scal": scal, "inv_vv": inv_vv, "vn": vn}, {"vn": damped})


def main():
    failed = 0
    ways = [
        ("double precision", np.float64, np.float64, ["--type", "vp=real"]),
        ("mixed precision", np.float32, np.float64, []),
        ("single precision", np.float32, np.float32, ["--precision", "f32"]),
    ]
    for name, vp, wp, options in ways:
        print(name)
        with tempfile.TemporaryDirectory() as folder:
            case = Case(Path(folder), vp, wp, options)
            for operators in (wind, diamonds, implicit, vertical, horizontal):
                operators(case)
            failed += case.failed
    sys.exit(f"{failed} arrays differ" if failed else 0)


if __name__ == "__main__":
    main()

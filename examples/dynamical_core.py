"""The operators of `stencilc run dynamical_core` against NumPy, to the last bit.

    python3 examples/dynamical_core.py path/to/stencilc

in double precision, in mixed precision, and in single precision; on a sphere, with its twelve pentagons, and on a limited area, at whose
border maps lead nowhere and whose lateral cells stay as they are. NumPy from 2.0 on, whose rules for numbers of several precisions are those of
the language: what is written takes the precision of what it meets.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import radial_basis

LEVELS = 9
STENCILC = str(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else "stencilc"

MESHES = [
    ("a sphere", ["icosahedral", "--size", "R2B2"]),
    ("a limited area", ["limited", "--size", "R2B2", "--within", "40", "--centre", "10,50", "--lateral", "2", "--nudging", "2"]),
]


def made(folder, call):
    """A mesh. On a sphere everything is in the interior."""
    subprocess.run([STENCILC, "mesh", "make", *call, "-o", "mesh.npz"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    mesh = dict(np.load(folder / "mesh.npz"))
    for name in ("edge", "cell"):
        mesh.setdefault(f"zone on {name}", np.full(mesh[f"set {name}"], 2, np.int32))
    np.savez(folder / "mesh.npz", **mesh)
    return mesh


def same_bits(found, expected):
    """Whether two arrays hold the same, NaN where NaN is; 0 and -0 differ."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return False
    bits = f"u{found.dtype.itemsize}"
    return bool(np.all((found.view(bits) == expected.view(bits)) | (np.isnan(found) & np.isnan(expected))))


class Case:
    """A mesh, random numbers, and the types `vp` and `wp` of one way to compute."""

    def __init__(self, folder, mesh, vp, wp, options):
        self.folder, self.vp, self.wp, self.options = folder, vp, wp, options
        self.random, self.failed = np.random.default_rng(5), 0
        self.mesh = mesh
        self.map = {name.split(" -> ")[0]: table for name, table in mesh.items() if " -> " in name}
        self.sizes = [int(mesh[f"set {name}"]) for name in ("vertex", "edge", "cell")]

    def draw(self, kind, *shape, low=-1, high=1):
        return (self.random.random(shape) * (high - low) + low).astype(kind)

    def known(self, kind, *names):
        """Fields that come with the mesh, in a precision."""
        return [self.mesh[name].astype(kind) for name in names]

    def is_computed(self, name):
        """Which elements are not lateral."""
        return self.mesh[f"zone on {name}"] > 0

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
            same = same_bits(np.load(self.folder / f"{field}_out.npy")[first:], array[first:])
            self.failed += not same
            print(f"  {name} {field}: {'equal' if same else 'DIFFERENT'}")

    def expect(self, what, is_so):
        self.failed += not is_so
        print(f"  {what}: {'yes' if is_so else 'NO'}")


def at(numbers, elements):
    """Numbers of the elements that a slot of a map leads to; 0 where it leads nowhere."""
    return np.where(elements >= 0, numbers[..., elements], numbers.dtype.type(0))


def slot(coefficients, table, number):
    """The coefficients of a slot; 0 where it leads nowhere."""
    return np.where(table[:, number] >= 0, coefficients[..., number], coefficients.dtype.type(0))


def sum_of_there(terms, table):
    """The terms of the slots of a map from left to right, without those that lead nowhere."""
    result, is_begun = None, np.zeros(len(table), bool)
    for number, term in enumerate(terms):
        is_there = table[:, number] >= 0
        if result is None:
            result = np.zeros_like(term)
        result = np.where(is_there, np.where(is_begun, result + term, term), result)
        is_begun = is_begun | is_there
    return result


def total(terms):
    """The terms from left to right."""
    terms = list(terms)
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def differences(case):
    vp, wp, (_, edges, cells) = case.vp, case.wp, case.sizes
    of_cell, of_edge, ends, around = (case.map[name] for name in ("cell.edges", "edge.cells", "edge.vertices", "vertex.edges"))
    length, dual_length, area, dual_area = case.known(wp, "length on edge", "dual_length on edge", "area on cell", "dual_area on vertex")
    outwards, turning = case.known(np.int32, "orientation on cell.edges", "orientation on vertex.edges")
    psi, vn = case.draw(wp, LEVELS, cells), case.draw(wp, LEVELS, edges)

    grad = (at(psi, of_edge[:, 1]) - at(psi, of_edge[:, 0])) / dual_length
    case.run("gradient", {"psi": psi, "dual_length": dual_length}, {"grad": grad})

    out, turn = outwards.astype(wp), turning.astype(wp)
    div = total(out[:, n] * length[of_cell[:, n]] * vn[:, of_cell[:, n]] for n in range(3)) / area
    case.run("divergence", {"vn": vn, "orientation": outwards, "length": length, "area": area}, {"div": div.astype(vp)})
    rot = sum_of_there((turn[:, n] * dual_length[around[:, n]] * vn[:, around[:, n]] for n in range(6)), around) / dual_area
    inputs = {"vn": vn, "dual_length": dual_length, "dual_area": dual_area}
    case.run("curl", inputs | {"orientation": turning}, {"rot": rot})
    second = (at(div, of_edge[:, 1]) - at(div, of_edge[:, 0])) / dual_length - (rot[:, ends[:, 1]] - rot[:, ends[:, 0]]) / length
    inputs |= {"outwards": outwards, "around": turning, "length": length, "area": area}
    case.run("nabla2", inputs, {"nabla2": second})

    # A gradient does not turn, at pentagons neither; where cells are missing nothing is said.
    rot = sum_of_there((turn[:, n] * dual_length[around[:, n]] * grad[:, around[:, n]] for n in range(6)), around) / dual_area
    small = 1e-9 if wp is np.float64 else 1e-3
    case.expect("a gradient does not turn", np.all(np.abs(rot[:, has_all_cells(case)]) < small * np.abs(grad).max()))


def has_all_cells(case):
    """Which vertices have as many cells around as edges: all but those at the border."""
    edges, cells = ((case.map[f"vertex.{name}"] >= 0).sum(axis=1) for name in ("edges", "cells"))
    return edges == cells


def reconstruction(case):
    vp, wp, (vertices, edges, cells) = case.vp, case.wp, case.sizes
    around, beside, beyond, of_cell = (case.map[name] for name in ("vertex.edges", "edge.edges", "cell.cells", "cell.edges"))
    mesh, scale = case.mesh, 2 * case.mesh["length on edge"].mean()
    on_edges, normals = mesh["x on edge"], mesh["normal on edge"]
    # The nine edges of the cells around; of one that is missing none.
    nine = np.where(beyond[:, :, None] >= 0, of_cell[beyond], -1).reshape(cells, 9)

    def solved(name, table, directions):
        return [radial_basis.coefficients(on_edges, normals, table, mesh[f"x on {name}"], own, scale) for own in directions]

    at_vertices, at_cells = (radial_basis.east_and_north(mesh[f"x on {name}"]) for name in ("vertex", "cell"))
    vertex_rbf, cell_rbf = solved("vertex", around, at_vertices), solved("cell", nine, at_cells)
    (edge_rbf,) = solved("edge", beside, [mesh["tangent on edge"]])

    # Air that turns as a solid body is met to a hundredth, wherever nothing is missing.
    turning = lambda x: np.cross([0.2, -0.4, 0.6], x)
    flow = np.einsum("ec,ec->e", turning(on_edges), normals)
    rows = [("vertex", around, at_vertices, vertex_rbf, has_all_cells(case))]
    rows += [("cell", nine, at_cells, cell_rbf, np.all(nine >= 0, axis=1))]
    rows += [("edge", beside, [mesh["tangent on edge"]], [edge_rbf], np.all(beside >= 0, axis=1))]
    for name, table, directions, rbf, is_whole in rows:
        exact = [np.einsum("ec,ec->e", turning(mesh[f"x on {name}"]), own) for own in directions]
        found = [(own * flow[table]).sum(axis=1) for own in rbf]
        error = max(np.abs(a - b)[is_whole].max() for a, b in zip(exact, found))
        case.expect(f"the wind of each {name} is as it is", error < 0.01)

    vn = case.draw(wp, LEVELS, edges)
    east, north = (own.astype(wp) for own in vertex_rbf)
    wind = [sum_of_there((own[:, n] * vn[:, around[:, n]] for n in range(6)), around).astype(vp) for own in (east, north)]
    case.run("wind_at_vertices", {"vn": vn, "east": east, "north": north}, {"u": wind[0], "v": wind[1]})

    east, north = (own.astype(wp).reshape(cells, 3, 3) for own in cell_rbf)
    of_one = lambda own, n: total(own[:, n, e] * vn[:, of_cell[beyond[:, n], e]] for e in range(3))
    wind = [sum_of_there((of_one(own, n) for n in range(3)), beyond).astype(vp) for own in (east, north)]
    case.run("wind_at_cells", {"vn": vn, "east": east, "north": north}, {"u": wind[0], "v": wind[1]})

    rbf, ddxn, ddxt = edge_rbf.astype(wp), case.draw(vp, LEVELS, edges), case.draw(vp, LEVELS, edges)
    vt = total(slot(rbf, beside, n) * at(vn, beside[:, n]) for n in range(4)).astype(vp)
    concorr = (vn * ddxn).astype(vp) + vt * ddxt
    case.run("tangential", {"vn": vn, "rbf": rbf, "ddxn": ddxn, "ddxt": ddxt}, {"vt": vt, "concorr": concorr})

    bln, weight = case.draw(wp, cells, 3), case.draw(vp, LEVELS, cells)
    wq = [case.draw(vp, cells) for _ in range(3)]
    on_cells = total(bln[:, n] * concorr[:, of_cell[:, n]] for n in range(3)).astype(vp)
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
    part = lambda wind, n, own: at(wind, diamond[:, n]) * slot(own, diamond, n)
    along = lambda n, a, b: part(u, n, a) + part(v, n, b)
    tangential, normal = along(0, pnv1, pnv2) + along(1, pnv1, pnv2), along(2, pnv1, pnv2) + along(3, pnv1, pnv2)
    nabla = 4 * ((normal - 2 * nabla2) * (inv_vv * inv_vv) + (tangential - 2 * nabla2) * (inv_pe * inv_pe))
    winds = {"u": u, "v": v, "pnv1": pnv1, "pnv2": pnv2, "inv_vv": inv_vv, "inv_pe": inv_pe}
    case.run("nabla4", winds | {"nabla2": nabla2}, {"nabla": nabla.astype(vp)})

    turn, fac = case.draw(wp, edges), case.draw(vp, LEVELS)
    n, t = lambda corner: along(corner, pnv1, pnv2), lambda corner: along(corner, dnv1, dnv2)
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
    wp, cells, dt = case.wp, case.sizes[2], case.wp(0.5)
    q, air = case.draw(wp, LEVELS, cells), case.draw(wp, LEVELS, cells, low=1, high=2)
    # As much as may empty more than two levels.
    mass_flux = case.draw(wp, LEVELS + 1, cells, low=-5, high=5)
    last = LEVELS - 1

    zero = np.zeros(cells, wp)
    to_above = [zero] + [q[k] - q[k - 1] for k in range(1, LEVELS)]
    to_below = to_above[1:] + [zero]
    slope, face = [zero] * LEVELS, [None] * LEVELS
    for k in range(1, last):
        a, b, c = air[k - 1], air[k], air[k + 1]
        mean = b / (a + b + c) * ((2 * a + b) / (c + b) * to_below[k] + (b + 2 * c) / (a + b) * to_above[k])
        least = np.minimum(np.minimum(np.abs(mean), 2 * np.abs(to_above[k])), 2 * np.abs(to_below[k]))
        slope[k] = np.where(to_above[k] * to_below[k] > 0, np.copysign(least, mean), zero)
    for k in range(LEVELS):
        if k == 0:
            face[k] = q[k]
            continue
        b, c = air[k - 1], air[k]
        face[k] = q[k - 1] + b / (b + c) * to_above[k]
        if 1 < k < last:
            a, d = air[k - 2], air[k + 1]
            upper, lower = (a + b) / (2 * b + c), (d + c) / (2 * c + b)
            change = 2 * c * b / (b + c) * (upper - lower) * to_above[k] - b * upper * slope[k] + c * lower * slope[k - 1]
            face[k] = face[k] + change / (a + b + c + d)
    face, lower_face = np.array(face), np.array(face[1:] + [q[last]])
    rise = lower_face - face
    bend, bound = rise * (q - 0.5 * (face + lower_face)), rise * rise / 6
    is_extreme = (lower_face - q) * (q - face) <= 0
    above = np.where(is_extreme, q, np.where(bend > bound, 3 * q - 2 * lower_face, face))
    below = np.where(is_extreme, q, np.where(-bound > bend, 3 * q - 2 * face, lower_face))
    case.run("parabolas", {"q": q, "air": air}, {"above": above, "below": below})

    curve = 6 * q - 3 * (above + below)
    def from_uppermost(part, k):
        x = part / air[k]
        return part * (above[k] + 0.5 * x * (below[k] - above[k] + (1 - 2 * x / 3) * curve[k]))
    def from_lowest(part, k):
        x = part / air[k]
        return part * (below[k] - 0.5 * x * (below[k] - above[k] - (1 - 2 * x / 3) * curve[k]))
    def passing(k, step, of_level):
        """What comes of three levels from `k` on, of which the first is used up first."""
        left, terms, gone = np.abs(mass_flux[max(k, k - step)]) * dt, [], None
        for level in (k, k + step, k + 2 * step):
            is_there = 0 <= level < LEVELS
            part = np.minimum(left, air[level] if is_there else zero)
            terms.append(of_level(part, level) if is_there else zero)
            left = left - part
        return total(terms)

    flux = {"upwind": np.zeros((LEVELS + 1, cells), wp), "ppm": np.zeros((LEVELS + 1, cells), wp)}
    whole = lambda part, k: part * q[k]
    for name, upwards, downwards in [("upwind", whole, whole), ("ppm", from_uppermost, from_lowest)]:
        for k in range(1, LEVELS):
            flux[name][k] = np.where(mass_flux[k] > 0, passing(k, 1, upwards) / dt, -passing(k - 1, -1, downwards) / dt)
    inputs = {"q": q, "air": air, "mass_flux": mass_flux}
    case.run("upwind_fluxes", inputs, {"flux": flux["upwind"]})
    case.run("ppm_fluxes", inputs | {"above": above, "below": below}, {"flux": flux["ppm"]})

    # Air that is there afterwards: less goes through interfaces than levels hold.
    slow = case.draw(wp, LEVELS + 1, cells, low=-0.5, high=0.5)
    left = air + dt * (slow[1:] - slow[:-1])
    after = (air * q + dt * (flux["ppm"][1:] - flux["ppm"][:-1])) / left
    inputs = {"q": q, "air": air, "flux": flux["ppm"], "mass_flux": slow}
    case.run("carried", inputs, {"q_after": after, "air_after": left})


def horizontal(case):
    vp, wp, (_, edges, cells), beyond = case.vp, case.wp, case.sizes, case.map["cell.cells"]
    vcoef, geofac, own = case.draw(wp, LEVELS, cells, 3), case.draw(wp, cells, 3), case.draw(wp, cells)
    diffcoef, theta, temp = (case.draw(wp, LEVELS, cells) for _ in range(3))
    level, levels = np.arange(LEVELS)[:, None], np.arange(LEVELS)[:, None, None]
    below = case.random.integers(-2, 3, (LEVELS, cells, 3))
    below = (np.clip(below + levels, 0, LEVELS - 1) - levels).astype(np.int32)
    mask = case.random.integers(0, 2, (LEVELS, cells)).astype(np.int32)
    there = [theta[level + below[:, :, n], beyond[:, n]] for n in range(3)]
    mixed = [vcoef[:, :, n] * there[n] + (1 - vcoef[:, :, n]) * there[n] for n in range(3)]
    changed = temp + diffcoef * (theta * own + sum_of_there((geofac[:, n] * mixed[n] for n in range(3)), beyond))
    changed = np.where(case.is_computed("cell") & (mask > 0), changed, temp)
    inputs = {"vcoef": vcoef, "geofac": geofac, "own": own, "diffcoef": diffcoef, "below": below, "mask": mask}
    case.run("horizontal_diffusion", inputs | {"theta": theta, "temp": temp}, {"temp": changed})

    div, scal = case.draw(vp, LEVELS, cells), case.draw(vp, LEVELS)
    inv_vv, vn, of_edge = case.draw(wp, edges), case.draw(wp, LEVELS, edges), case.map["edge.cells"]
    lap = div - sum_of_there((div[:, beyond[:, n]] for n in range(3)), beyond) / vp(3)
    damped = vn + scal[:, None] * ((at(lap, of_edge[:, 1]) - at(lap, of_edge[:, 0])) * inv_vv)
    damped = np.where(case.is_computed("edge"), damped, vn)
    case.run("damping", {"div": div, "scal": scal, "inv_vv": inv_vv, "vn": vn}, {"vn": damped})

    zone, (value, driver), coefficient = case.mesh["zone on cell"], (case.draw(wp, LEVELS, cells) for _ in range(2)), case.draw(wp, cells)
    drawn = np.where(zone == 1, value + coefficient * (driver - value), value)
    inputs = {"value": value, "driver": driver, "coefficient": coefficient}
    case.run("driven", inputs, {"value": np.where(zone == 0, driver, drawn)})


def main():
    failed = 0
    ways = [
        ("double precision", np.float64, np.float64, ["--type", "vp=real"]),
        ("mixed precision", np.float32, np.float64, []),
        ("single precision", np.float32, np.float32, ["--precision", "f32"]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for where, call in MESHES:
            mesh = made(Path(folder), call)
            for name, vp, wp, options in ways:
                print(f"{where}, {name}")
                case = Case(Path(folder), mesh, vp, wp, options)
                for operators in (differences, reconstruction, diamonds, implicit, vertical, horizontal):
                    operators(case)
                failed += case.failed
    sys.exit(f"{failed} comparisons failed" if failed else 0)


if __name__ == "__main__":
    main()

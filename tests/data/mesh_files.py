"""Writes the Gmsh files that `mesh/gmsh.rs` is tested with, by Gmsh itself: `pip install gmsh; python3 mesh_files.py`."""

from pathlib import Path

import gmsh

FOLDER = Path(__file__).parent / "mesh_files"


def write(name):
    for version in [2.2, 4.1]:
        for binary in [0, 1]:
            gmsh.option.setNumber("Mesh.MshFileVersion", version)
            gmsh.option.setNumber("Mesh.Binary", binary)
            gmsh.write(str(FOLDER / f"{name}_{int(version)}_{'binary' if binary else 'text'}.msh"))


gmsh.initialize()
gmsh.option.setNumber("General.Terminal", 0)

# A square of 2 by 2: triangles on the left, quadrilaterals on the right.
left = gmsh.model.occ.addRectangle(0, 0, 0, 1, 2)
right = gmsh.model.occ.addRectangle(1, 0, 0, 1, 2)
gmsh.model.occ.fragment([(2, left)], [(2, right)])
gmsh.model.occ.synchronize()
for curve in gmsh.model.getEntities(1):
    gmsh.model.mesh.setTransfiniteCurve(curve[1], 3)
for surface in [left, right]:
    gmsh.model.mesh.setTransfiniteSurface(surface)
gmsh.model.mesh.setRecombine(2, right)
gmsh.model.addPhysicalGroup(2, [left], 10, "left")
gmsh.model.addPhysicalGroup(2, [right], 20, "right")
border = [curve[1] for curve in gmsh.model.getBoundary([(2, left), (2, right)], oriented=False)]
gmsh.model.addPhysicalGroup(1, border[:2], 1, "wall")
gmsh.model.addPhysicalGroup(1, border[2:], 2, "far")
gmsh.model.mesh.generate(2)
write("square")

# A cube of tetrahedra, with a name for one of its sides.
gmsh.clear()
box = gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
gmsh.model.occ.synchronize()
gmsh.option.setNumber("Mesh.MeshSizeMin", 0.9)
gmsh.model.addPhysicalGroup(3, [box], 7, "fluid")
gmsh.model.addPhysicalGroup(2, [1], 5, "inlet")
gmsh.model.mesh.generate(3)
write("cube")
gmsh.finalize()

"""Coefficients that reconstruct vectors from their parts along the normals of edges, by radial basis functions.

A vector field is sought as a sum of fields, one for each edge around, that point along its normal and fade away from it
(F. J. Narcowich and J. D. Ward, Math. Comput. 63 (1994); T. Ruppert, TU Darmstadt (2007)). Its parts along all these normals are
known, which is a small linear system for each place; solved once, it leaves a coefficient for each edge.
"""

import numpy as np


def coefficients(places, normals, table, points, directions, scale):
    """How much each edge gives to the part of the wind at `points` along `directions`.

    `places` and `normals` are those of all edges, `table` says which edges are around each point; a hole, -1, gives nothing.
    """
    is_there = table >= 0
    place, normal = places[table], normals[table]
    fades = lambda a, b: np.exp(-(((a - b) ** 2).sum(axis=-1) / scale**2))
    both = is_there[:, :, None] & is_there[:, None, :]
    system = fades(place[:, :, None], place[:, None, :]) * np.einsum("eac,ebc->eab", normal, normal)
    # Where an edge is missing, its equation says that it gives nothing.
    system = np.where(both, system, np.eye(table.shape[1]))
    along = np.einsum("eac,ec->ea", normal, directions)
    right = np.where(is_there, fades(place, points[:, None]) * along, 0)
    found = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    # What is the same everywhere is met exactly, as ICON has it.
    return found / (found * np.where(is_there, along, 0)).sum(axis=1)[:, None]


def east_and_north(points):
    """Directions at points of a sphere. At a pole, where there is no east, the y axis is taken for it."""
    up = points / np.linalg.norm(points, axis=1)[:, None]
    east = np.stack([-up[:, 1], up[:, 0], np.zeros(len(up))], axis=1)
    length = np.linalg.norm(east, axis=1)[:, None]
    east = np.where(length > 1e-9, east / np.maximum(length, 1e-9), [0.0, 1.0, 0.0])
    return east, np.cross(up, east)

# The fourth-order diffusion of a square on a periodic plane: what stencils/diffusion4.stn computes, by NumPy.
#
#     python3 square.py    writes square.npy
import numpy

n, steps, alpha = 64, 1024, 1 / 32


def laplacian(a):
    # Rows are j, columns are i; the order of the sum is that of the stencil.
    left, right = numpy.roll(a, 1, axis=2), numpy.roll(a, -1, axis=2)
    top, bottom = numpy.roll(a, 1, axis=1), numpy.roll(a, -1, axis=1)
    return left + right + top + bottom - 4 * a


phi = numpy.zeros((1, n, n))
phi[:, n // 4 : 3 * n // 4, n // 4 : 3 * n // 4] = 1
for _ in range(steps):
    phi = phi - alpha * laplacian(laplacian(phi))
numpy.save("square.npy", phi)

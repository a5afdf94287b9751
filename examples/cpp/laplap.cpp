// Calls a built stencil from C++ on the CPU, and compares it with plain loops, bit for bit. CMakeLists.txt, beside this folder, builds it;
// by hand it is
//
//     stencilc build laplap --host -o .
//     g++ -O3 -ffp-contract=off -frounding-math -fno-tree-slp-vectorize -I. -o compare EXAMPLES/cpp/laplap.cpp laplap.cpp
#include "laplap.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

const int ni = 203, nj = 97, nk = 11;

int at(int i, int j, int k) { return i + j * ni + k * ni * nj; }

// 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]: the product and the first difference round once.
double laplacian(double a, double left, double right, double top, double bottom)
{
    return std::fma(4.0, a, -left) - right - top - bottom;
}

double lap(const std::vector<double>& phi, int i, int j, int k)
{
    return laplacian(phi[at(i, j, k)], phi[at(i - 1, j, k)], phi[at(i + 1, j, k)], phi[at(i, j - 1, k)], phi[at(i, j + 1, k)]);
}

}  // namespace

int main()
{
    std::vector<double> phi(ni * nj * nk), expected(phi.size(), -1), found(phi.size(), -1);
    for (double& value : phi) value = std::rand() / double(RAND_MAX) - 0.5;
    for (int k = 0; k < nk; ++k) {
        for (int j = 2; j < nj - 2; ++j) {
            for (int i = 2; i < ni - 2; ++i) {
                expected[at(i, j, k)] = laplacian(
                    lap(phi, i, j, k), lap(phi, i - 1, j, k), lap(phi, i + 1, j, k), lap(phi, i, j - 1, k), lap(phi, i, j + 1, k));
            }
        }
    }
    laplap_args args = {};
    args.phi = phi.data();
    args.res = found.data();
    args.ni = ni;
    args.nj = nj;
    args.nk = nk;
    args.row = ni;
    args.plane = ni * nj;
    // Without a queue it is done when this returns.
    int status = laplap_in_queue(&args, nullptr);
    if (status != 0) {
        std::printf("%s\n", laplap_message(status));
        return 1;
    }
    int wrong = 0;
    for (std::size_t cell = 0; cell < phi.size(); ++cell) wrong += std::memcmp(&found[cell], &expected[cell], sizeof(double)) != 0;
    std::printf("%d of %zu cells differ\n", wrong, phi.size());
    args.ni = 4;
    status = laplap_launch(&args, nullptr);
    if (status == 0) return 1;
    std::printf("%s\n", laplap_message(status));
    return wrong != 0;
}

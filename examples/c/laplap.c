/*
 * Calls a built kernel from C, and compares it with a plain loop, bit for bit.
 *
 *     stencilc build laplap -o .
 *     nvcc -arch=native -fmad=false -c laplap.cu -o laplap_kernel.o
 *     gcc -O2 -ffp-contract=off -I/usr/local/cuda/include laplap.c laplap_kernel.o -L/usr/local/cuda/lib64 -lcudart -lm -lstdc++
 */
#include "laplap.h"
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NI = 203, NJ = 97, NK = 11, CELLS = NI * NJ * NK };

static double phi[CELLS], expected[CELLS], found[CELLS];

static int at(int i, int j, int k) { return i + j * NI + k * NI * NJ; }

/* 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]: the product and the first difference round once. */
static double laplacian(double a, double left, double right, double top, double bottom)
{
    return fma(4.0, a, -left) - right - top - bottom;
}

static double lap(int i, int j, int k)
{
    return laplacian(phi[at(i, j, k)], phi[at(i - 1, j, k)], phi[at(i + 1, j, k)], phi[at(i, j - 1, k)], phi[at(i, j + 1, k)]);
}

int main(void)
{
    double *phi_device, *res_device;
    laplap_args args;
    int i, j, k, wrong = 0;
    for (i = 0; i < CELLS; ++i) phi[i] = rand() / (double)RAND_MAX - 0.5;
    for (i = 0; i < CELLS; ++i) expected[i] = -1;
    for (k = 0; k < NK; ++k)
        for (j = 2; j < NJ - 2; ++j)
            for (i = 2; i < NI - 2; ++i)
                expected[at(i, j, k)] = laplacian(lap(i, j, k), lap(i - 1, j, k), lap(i + 1, j, k), lap(i, j - 1, k), lap(i, j + 1, k));
    for (i = 0; i < CELLS; ++i) found[i] = -1;
    if (cudaMalloc((void**)&phi_device, sizeof phi) || cudaMalloc((void**)&res_device, sizeof found)) {
        printf("no GPU\n");
        return 1;
    }
    cudaMemcpy(phi_device, phi, sizeof phi, cudaMemcpyHostToDevice);
    cudaMemcpy(res_device, found, sizeof found, cudaMemcpyHostToDevice);

    /* A plain C array: rows follow each other without padding. */
    memset(&args, 0, sizeof args);
    args.phi = phi_device;
    args.res = res_device;
    args.ni = NI;
    args.nj = NJ;
    args.nk = NK;
    args.row = NI;
    args.plane = NI * NJ;
    i = laplap_launch(&args, 0);
    if (i != 0 || cudaDeviceSynchronize() != cudaSuccess) {
        printf("the launch failed: %d\n", i);
        return 1;
    }
    cudaMemcpy(found, res_device, sizeof found, cudaMemcpyDeviceToHost);
    for (i = 0; i < CELLS; ++i) wrong += memcmp(&found[i], &expected[i], sizeof(double)) != 0;
    printf("%d of %d cells differ\n", wrong, CELLS);
    args.ni = 4;
    if (laplap_launch(&args, 0) == 0) {
        printf("a grid that is too small was accepted\n");
        return 1;
    }
    return wrong != 0;
}

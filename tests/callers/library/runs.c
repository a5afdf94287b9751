/* Runs programs on each device and on several parts, from the caller's numbers, and prints a sum of the bits that come out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencilc.h>

enum { CELLS = 24 * 12, PARTS = 4, NI = 14, NJ = 17, NK = 2, ROOM = 3 };

static void done(StencilcStatus status, int line)
{
    if (status == STENCILC_STATUS_OK) return;
    printf("line %d: %s\n", line, stencilc_message());
    exit(1);
}
#define DONE(call) done(call, __LINE__)

/* Bits, with their places. */
static uint64_t sum_of(const void* numbers, size_t bytes)
{
    const unsigned char* const own = numbers;
    uint64_t sum = 14695981039346656037u;
    size_t n;
    for (n = 0; n < bytes; ++n) sum = (sum ^ own[n]) * 1099511628211u;
    return sum;
}

static void choose(StencilcStencil* stencil, const char* device, size_t devices)
{
    DONE(stencilc_set_device(stencil, device));
    DONE(stencilc_set_devices(stencil, devices));
}

static void flow(const char* file, const char* device, size_t devices)
{
    static double q[CELLS][PARTS];
    StencilcStencil* airfoil = NULL;
    StencilcMesh* mesh = NULL;
    StencilcRun *run = NULL, *rest = NULL;
    const StencilcArray array = {sizeof array, "q", q, STENCILC_F64, 0, STENCILC_HOST, 2, {CELLS, PARTS}, {0}};
    uint64_t steps, all;
    size_t count;
    double rms;
    DONE(stencilc_load("airfoil", "airfoil_flow", &airfoil));
    choose(airfoil, device, devices);
    DONE(stencilc_set_int(airfoil, "steps", 6));
    DONE(stencilc_mesh_read(file, &mesh));
    DONE(stencilc_mesh_size(mesh, "cell", &count));
    if (count != CELLS) exit(2);
    DONE(stencilc_run_begin(airfoil, mesh, NULL, 0, &run));
    DONE(stencilc_run_step(run, 2, &steps));
    if (steps != 2) exit(3);
    /* What was saved goes on elsewhere. */
    DONE(stencilc_run_save(run, "flow.npz"));
    DONE(stencilc_run_free(run));
    DONE(stencilc_set_device(airfoil, "cpu"));
    DONE(stencilc_run_resume(airfoil, mesh, "flow.npz", &rest));
    DONE(stencilc_run_step(rest, UINT64_MAX, NULL));
    DONE(stencilc_run_wait(rest));
    DONE(stencilc_run_progress(rest, &steps, &all));
    if (steps != 6 || all != 6) exit(4);
    DONE(stencilc_run_get(rest, &array));
    DONE(stencilc_run_number(rest, "rms", &rms));
    printf("flow %016" PRIx64 " %016" PRIx64 "\n", sum_of(q, sizeof q), sum_of(&rms, sizeof rms));
    DONE(stencilc_run_free(rest));
    DONE(stencilc_mesh_free(mesh));
    DONE(stencilc_free(airfoil));
}

static void heat(const char* device, size_t devices)
{
    static float wide[NK][NJ][NI + ROOM], t[NK][NJ][NI];
    StencilcStencil* walls = NULL;
    StencilcRun* run = NULL;
    StencilcArray array = {sizeof array, "t", t, STENCILC_F32, 0, STENCILC_HOST, 3, {NK, NJ, NI}, {0}};
    int n;
    for (n = 0; n < NK * NJ * NI; ++n) (&t[0][0][0])[n] = (float)(n % 13);
    for (n = 0; n < NK * NJ * (NI + ROOM); ++n) (&wide[0][0][0])[n] = -1;
    DONE(stencilc_load("heat", "heat_walls", &walls));
    choose(walls, device, devices);
    DONE(stencilc_set_precision(walls, STENCILC_F32));
    DONE(stencilc_set_int(walls, "steps", 9));
    DONE(stencilc_set_real(walls, "wall", 20));
    DONE(stencilc_run_begin(walls, NULL, &array, 1, &run));
    DONE(stencilc_run_step(run, 4, NULL));
    /* Into a part of a larger array, and back. */
    array.data = wide;
    array.strides[0] = NJ * (NI + ROOM);
    array.strides[1] = NI + ROOM;
    array.strides[2] = 1;
    DONE(stencilc_run_get(run, &array));
    for (n = 0; n < NK * NJ; ++n) {
        if ((&wide[0][0])[n][NI] != -1 || (&wide[0][0])[n][NI + ROOM - 1] != -1) exit(5);
        memcpy((&t[0][0])[n], (&wide[0][0])[n], sizeof t[0][0]);
    }
    DONE(stencilc_run_put(run, &array));
    /* Rows that lie in each other's place are not written. */
    array.strides[1] = NI - 1;
    if (stencilc_run_get(run, &array) == STENCILC_STATUS_OK || strstr(stencilc_message(), "in the place of others") == NULL) exit(7);
    array.strides[1] = NI + ROOM;
    DONE(stencilc_run_step(run, 100, NULL));
    DONE(stencilc_run_get(run, &array));
    for (n = 0; n < NK * NJ; ++n) memcpy((&t[0][0])[n], (&wide[0][0])[n], sizeof t[0][0]);
    printf("heat %016" PRIx64 "\n", sum_of(t, sizeof t));
    DONE(stencilc_run_free(run));
    DONE(stencilc_free(walls));
}

int main(int count, char** words)
{
    if (count != 4) return 6;
    flow(words[1], words[2], (size_t)atoi(words[3]));
    heat(words[2], (size_t)atoi(words[3]));
    return 0;
}

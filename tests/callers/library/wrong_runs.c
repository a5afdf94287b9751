/* Calls what is about meshes and runs in every wrong way, and then in a right one. */
#include "check.h"

enum { CELLS = 5 };

static double heat[CELLS], wide[1][CELLS + 1];
static int32_t cells[CELLS][2], sides[CELLS][2], count[1], few[1];

int main(void)
{
    const char* const text =
        "mesh ring { set edge, cell; map edge.cells -> cell[2] }\n"
        "stencil flux over ring.edge { in heat on cell; inc change on cell\n"
        "    let f = 0.25 * (heat[cells.1] - heat[cells.0])\n"
        "    change[cells.0] += f\n    change[cells.1] -= f\n}\n"
        "stencil most over ring.cell { in heat on cell; reduce top: max; top = heat }\n"
        "stencil halve { in a; out b; b = 0.5 * a[i-1] }\n"
        "program cool { inout a; param n: int; repeat n { a = halve(a) } }\n"
        "program spread over ring { inout heat on cell; out top: real on (); param n: int\n"
        "    repeat n { heat = flux(heat, heat); top = most(heat) } }\n";
    StencilcStencil *halve = NULL, *cool = NULL, *spread = NULL;
    StencilcMesh *ring = NULL, *mesh = NULL;
    StencilcRun *run = NULL, *another = NULL, *freed;
    StencilcCall* call = NULL;
    StencilcField field = {sizeof field};
    const StencilcArray table = {sizeof table, "edge.cells -> cell", cells, STENCILC_I32, 0, STENCILC_HOST, 2, {CELLS, 2}, {0}};
    const StencilcArray size = {sizeof size, "set cell", count, STENCILC_I32, 0, STENCILC_HOST, 1, {1}, {0}};
    StencilcArray parts[2], far[2], small[2], off[1], twice[2], unnamed, huge, repeated, beside, real, numbers, elsewhere, longer, single, there, plane, empty;
    uint64_t done = 0;
    double value;
    size_t elements;
    int cell;
    for (cell = 0; cell < CELLS; ++cell) {
        cells[cell][0] = sides[cell][0] = cell;
        cells[cell][1] = sides[cell][1] = (cell + 1) % CELLS;
        heat[cell] = cell;
    }
    sides[2][1] = CELLS;
    count[0] = CELLS;
    few[0] = CELLS - 1;
    parts[0] = far[0] = small[0] = unnamed = real = table;
    parts[1] = far[1] = small[1] = size;
    far[0].data = sides;
    small[1].data = few;
    unnamed.name = "cells";
    real.data = wide;
    real.element = STENCILC_F64;
    numbers = table;
    numbers.name = "heat";
    numbers.data = heat;
    numbers.element = STENCILC_F64;
    numbers.axes = 1;
    numbers.shape[0] = CELLS;
    elsewhere = longer = single = there = plane = empty = numbers;
    elsewhere.name = "heet";
    longer.data = wide;
    longer.shape[0] = CELLS + 1;
    single.element = STENCILC_F32;
    there.device = 0;
    plane.name = "a";
    plane.data = wide;
    plane.axes = 2;
    plane.shape[0] = 1;
    plane.shape[1] = CELLS + 1;
    empty.data = NULL;
    huge = beside = twice[0] = twice[1] = numbers;
    huge.shape[0] = INT64_C(1) << 50;
    beside.data = (char*)heat + 1;
    /* One number, over and over. */
    repeated = numbers;
    repeated.axes = 4;
    repeated.shape[0] = repeated.shape[1] = repeated.shape[2] = repeated.shape[3] = INT64_C(1) << 62;
    repeated.shape[3] = 2;
    repeated.strides[3] = 1;
    off[0] = table;
    off[0].data = (char*)cells + 2;

    if (stencilc_compile(text, "ring.stn", "halve", &halve) != STENCILC_STATUS_OK) return 2;
    if (stencilc_compile(text, "ring.stn", "cool", &cool) != STENCILC_STATUS_OK) return 3;
    if (stencilc_compile(text, "ring.stn", "spread", &spread) != STENCILC_STATUS_OK) return 4;
    if (stencilc_set_int(spread, "n", 7) != STENCILC_STATUS_OK) return 5;
    if (stencilc_mesh_make(parts, 2, 0, &ring) != STENCILC_STATUS_OK) return 6;
    if (stencilc_run_begin(spread, ring, &numbers, 1, &run) != STENCILC_STATUS_OK) return 7;
    /* CHECKS */
    if (mesh != NULL || another != NULL || call != NULL) return 8;
    if (stencilc_field(spread, 0, &field) != STENCILC_STATUS_OK || strcmp(field.on, "cell") != 0 || field.slots != 0) return 9;
    if (field.has_columns != 1 || field.has_levels != 0 || field.parts != 1 || field.role != STENCILC_UPDATE) return 10;

    /* None of that has done any harm, and runs outlive what they were begun with. */
    if (stencilc_free(spread) != STENCILC_STATUS_OK || stencilc_mesh_free(ring) != STENCILC_STATUS_OK) return 11;
    if (stencilc_run_step(run, 100, &done) != STENCILC_STATUS_OK || done != 7) return 12;
    if (stencilc_run_step(run, 1, &done) != STENCILC_STATUS_OK || done != 0) return 13;
    if (stencilc_run_get(run, &numbers) != STENCILC_STATUS_OK) return 14;
    if (stencilc_run_number(run, "top", &value) != STENCILC_STATUS_OK || value <= 2 || value >= 3) return 15;
    freed = run;
    if (stencilc_run_free(run) != STENCILC_STATUS_OK || stencilc_run_free(NULL) != STENCILC_STATUS_OK) return 16;
    check(stencilc_run_free(freed), STENCILC_STATUS_CALL, "the handle is none of a run that is there", __LINE__);
    check(stencilc_mesh_free(ring), STENCILC_STATUS_CALL, "the handle is none of a mesh that is there", __LINE__);
    if (stencilc_free(halve) != STENCILC_STATUS_OK || stencilc_free(cool) != STENCILC_STATUS_OK) return 17;
    puts("all was told");
    return 0;
}

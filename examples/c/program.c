/*
 * Runs a program over a mesh of the caller's own arrays, by libstencilc: heat spreads along the edges of a ring of cells.
 *
 *     cargo build --release -p stencilc-c
 *     gcc -std=c99 -Ic/include examples/c/program.c -Ltarget/release -lstencilc -Wl,-rpath,target/release -o spread
 */
#include <stdio.h>
#include <stencilc.h>

enum { CELLS = 8 };

static const char* const text =
    "mesh ring { set edge, cell; map edge.cells -> cell[2] }\n"
    "stencil flux over ring.edge {\n"
    "    in heat on cell; in conductivity on edge; inc change on cell\n"
    "    let f = conductivity * (heat[cells.1] - heat[cells.0])\n"
    "    change[cells.0] += f\n"
    "    change[cells.1] -= f\n"
    "}\n"
    "stencil largest over ring.cell { in heat on cell; reduce most: max; most = heat }\n"
    "program spread over ring {\n"
    "    inout heat on cell; in conductivity on edge; out most: real on ()\n"
    "    param n: int\n"
    "    repeat n {\n"
    "        heat = flux(heat, conductivity, heat)\n"
    "        most = largest(heat)\n"
    "    }\n"
    "}\n";

/* Ends the program where something went wrong. */
static int failed(StencilcStatus status)
{
    if (status != STENCILC_STATUS_OK) fprintf(stderr, "%s\n", stencilc_message());
    return status != STENCILC_STATUS_OK;
}

int main(void)
{
    int32_t cells[CELLS][2], count = CELLS;
    double heat[CELLS], conductivity[CELLS], most;
    uint64_t done, total;
    int cell;
    StencilcStencil* spread = NULL;
    StencilcMesh* mesh = NULL;
    StencilcRun* run = NULL;
    const StencilcArray parts[2] = {
        {sizeof(StencilcArray), "edge.cells -> cell", cells, STENCILC_I32, 0, STENCILC_HOST, 2, {CELLS, 2}, {0}},
        {sizeof(StencilcArray), "set cell", &count, STENCILC_I32, 0, STENCILC_HOST, 1, {1}, {0}},
    };
    const StencilcArray fields[2] = {
        {sizeof(StencilcArray), "heat", heat, STENCILC_F64, 0, STENCILC_HOST, 1, {CELLS}, {0}},
        {sizeof(StencilcArray), "conductivity", conductivity, STENCILC_F64, 0, STENCILC_HOST, 1, {CELLS}, {0}},
    };
    for (cell = 0; cell < CELLS; ++cell) {
        cells[cell][0] = cell;
        cells[cell][1] = (cell + 1) % CELLS;
        heat[cell] = cell == 3 ? 64 : 0;
        conductivity[cell] = 0.25;
    }

    if (failed(stencilc_compile(text, "ring.stn", "spread", &spread))) return 1;
    if (failed(stencilc_set_int(spread, "n", 100))) return 1;
    /* Elements are counted from 0. */
    if (failed(stencilc_mesh_make(parts, 2, 0, &mesh))) return 1;
    if (failed(stencilc_run_begin(spread, mesh, fields, 2, &run))) return 1;
    while (!failed(stencilc_run_step(run, 2, &done)) && done > 0) {
        if (failed(stencilc_run_progress(run, &done, &total)) || failed(stencilc_run_number(run, "most", &most))) return 1;
        if (done <= 4 || done == total) printf("%d of %d steps: at most %g\n", (int)done, (int)total, most);
    }
    if (failed(stencilc_run_get(run, &fields[0]))) return 1;
    printf("%.4f %.4f\n", heat[3], heat[7]);

    /* What is wrong is told. */
    if (stencilc_run_number(run, "heat", &most) == STENCILC_STATUS_OK) return 1;
    printf("%s\n", stencilc_message());
    return failed(stencilc_run_free(run)) || failed(stencilc_mesh_free(mesh)) || failed(stencilc_free(spread));
}

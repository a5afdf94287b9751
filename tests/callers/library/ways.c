/* Computes on every device of the CPU, on parts of larger arrays, in both precisions, changing an array in place, and then on others. */
#include <stdio.h>
#include <string.h>
#include <stencilc.h>

enum { NI = 70, NJ = 9, NK = 3, ROW = NI + 5, PLANE = ROW * (NJ + 2) };

static float t[2][PLANE * NK], kept[2][PLANE * NK];
static int32_t n[PLANE * NK];

static float number(int cell) { return (float)(cell % 97) * 0.5f; }

/* How many cells are wrong: those that are computed are the mean of two, plus their own number; others are as they were. */
static int wrong(int which)
{
    int cell, count = 0;
    for (cell = 0; cell < PLANE * NK; ++cell) {
        const int i = cell % ROW, j = cell % PLANE / ROW;
        const int is_computed = i >= 1 && i < NI - 1 && j < NJ;
        const float expected = is_computed ? 0.5f * (kept[which][cell - 1] + kept[which][cell + 1]) + (float)n[cell] : kept[which][cell];
        count += memcmp(&t[which][cell], &expected, sizeof expected) != 0;
    }
    return count;
}

static int failed(StencilcStatus status, int line)
{
    if (status != STENCILC_STATUS_OK) printf("line %d: %s\n", line, stencilc_message());
    return status != STENCILC_STATUS_OK;
}

int main(void)
{
    static const char* const devices[] = {"cpu", "native", "emulate"};
    const char* const text = "stencil mean { inout t; in n: int; t = 0.5 * (t[i-1] + t[i+1]) + n }";
    int way, which, cell;
    for (way = 0; way < 3; ++way) {
        StencilcStencil* stencil = NULL;
        StencilcCall* call = NULL;
        StencilcArray arrays[2] = {
            {sizeof(StencilcArray), "t", NULL, STENCILC_F32, 0, STENCILC_HOST, 3, {NK, NJ, NI}, {PLANE, ROW, 1}},
            {sizeof(StencilcArray), "n", NULL, STENCILC_I32, STENCILC_READ, STENCILC_HOST, 3, {NK, NJ, NI}, {PLANE, ROW, 1}},
        };
        StencilcField field = {sizeof field};
        for (cell = 0; cell < PLANE * NK; ++cell) {
            t[0][cell] = number(cell);
            t[1][cell] = number(3 * cell + 1);
            n[cell] = cell % 5;
        }
        memcpy(kept, t, sizeof t);
        arrays[0].data = t[0];
        arrays[1].data = n;
        if (failed(stencilc_compile(text, "mean.stn", "mean", &stencil), __LINE__)) return 1;
        if (failed(stencilc_set_device(stencil, devices[way]), __LINE__)) return 1;
        if (failed(stencilc_set_precision(stencil, STENCILC_F32), __LINE__)) return 1;
        if (failed(stencilc_field(stencil, 0, &field), __LINE__)) return 1;
        if (field.role != STENCILC_UPDATE || field.element != STENCILC_F32 || !field.has_columns || field.has_levels != 1) return 2;
        if (failed(stencilc_bind(stencil, arrays, 2, &call), __LINE__) || failed(stencilc_run(call), __LINE__)) return 1;
        arrays[0].data = t[1];
        if (failed(stencilc_lend(call, arrays, 2), __LINE__) || failed(stencilc_start(call, NULL), __LINE__)) return 1;
        if (failed(stencilc_wait(call), __LINE__)) return 1;
        for (which = 0; which < 2; ++which) printf("%s %d: %d wrong\n", devices[way], which, wrong(which));
        if (failed(stencilc_free_call(call), __LINE__) || failed(stencilc_free(stencil), __LINE__)) return 1;
    }
    return 0;
}

/*
 * Compiles a stencil when the program runs, by libstencilc, and computes it on arrays of the program's own.
 *
 *     cargo build --release -p stencilc-c
 *     gcc -std=c99 -Ic/include examples/c/library.c -Ltarget/release -lstencilc -Wl,-rpath,target/release -o smooth
 */
#include <stdio.h>
#include <stencilc.h>

enum { NI = 9, NJ = 7, NK = 2 };

static const char* const text = "stencil smooth {\n"
                                "    /// Any heights.\n"
                                "    in height\n"
                                "    param alpha: real = 1/32\n"
                                "    out smoothed\n"
                                "    smoothed = height - alpha * (4*height - height[i-1] - height[i+1] - height[j-1] - height[j+1])\n"
                                "}\n";

/* Ends the program where something went wrong. */
static int failed(StencilcStatus status)
{
    if (status != STENCILC_STATUS_OK) fprintf(stderr, "%s\n", stencilc_message());
    return status != STENCILC_STATUS_OK;
}

int main(void)
{
    double height[NK * NJ * NI], smoothed[NK * NJ * NI];
    int64_t first[3], end[3];
    size_t number;
    StencilcStencil* stencil = NULL;
    StencilcCall* call = NULL;
    StencilcArray arrays[2] = {
        {sizeof(StencilcArray), "height", NULL, STENCILC_F64, 0, STENCILC_HOST, 3, {NK, NJ, NI}, {0}},
        {sizeof(StencilcArray), "smoothed", NULL, STENCILC_F64, 0, STENCILC_HOST, 3, {NK, NJ, NI}, {0}},
    };
    for (number = 0; number < NK * NJ * NI; ++number) {
        height[number] = number == NI * 3 + 4 ? 32 : 0;
        smoothed[number] = -1;
    }
    arrays[0].data = height;
    arrays[1].data = smoothed;

    if (failed(stencilc_compile(text, "smooth.stn", NULL, &stencil))) return 1;
    printf("%s\n", stencilc_name(stencil));
    for (number = 0; number < stencilc_field_count(stencil); ++number) {
        StencilcField field = {sizeof(StencilcField)};
        if (failed(stencilc_field(stencil, number, &field))) return 1;
        printf("  %s %s\n", field.role == STENCILC_READ ? "in" : "out", field.name);
    }
    if (failed(stencilc_set_real(stencil, "alpha", 0.25))) return 1;
    if (failed(stencilc_bind(stencil, arrays, 2, &call))) return 1;
    if (failed(stencilc_region(call, first, end)) || failed(stencilc_run(call))) return 1;
    printf("cells %d to %d along i: %g %g %g\n", (int)first[2], (int)end[2], smoothed[NI * 3 + 3], smoothed[NI * 3 + 4], smoothed[NI * 3 + 5]);

    /* What is wrong is told. */
    if (stencilc_set_real(stencil, "alfa", 1.0) == STENCILC_STATUS_OK) return 1;
    printf("%s\n", stencilc_message());
    return failed(stencilc_free_call(call)) || failed(stencilc_free(stencil));
}

/* Calls the library in every wrong way, and then in a right one. */
#include "check.h"

enum { NI = 9, NJ = 7, NK = 2 };

static double a[NK * NJ * NI], b[NK * NJ * (NI + 1)];
static float single[NK * NJ * NI];
static StencilcArray arrays[2], others[2];

enum Changed {
    CHANGED_SIZE, CHANGED_NAME, CHANGED_NO_NAME, CHANGED_DATA, CHANGED_ELEMENT, CHANGED_SINGLE, CHANGED_USE, CHANGED_UPDATE,
    CHANGED_READ, CHANGED_AXES, CHANGED_SHAPE, CHANGED_STRIDES, CHANGED_OVERLAP, CHANGED_DEVICE, CHANGED_NOWHERE, CHANGED_ROWS
};

/* The arrays, of which the second is said in another way. */
static const StencilcArray* changed(enum Changed how)
{
    StencilcArray* own = &others[1];
    memcpy(others, arrays, sizeof arrays);
    switch (how) {
    case CHANGED_SIZE: others[0].size = 8; break;
    case CHANGED_NAME: own->name = "c"; break;
    case CHANGED_NO_NAME: own->name = NULL; break;
    case CHANGED_DATA: own->data = NULL; break;
    case CHANGED_ELEMENT: own->element = 77; break;
    case CHANGED_SINGLE: own->element = STENCILC_F32; own->data = single; break;
    case CHANGED_USE: own->role = 9; break;
    case CHANGED_UPDATE: own->role = STENCILC_UPDATE; break;
    case CHANGED_READ: own->role = STENCILC_READ; break;
    case CHANGED_AXES: own->axes = 5; break;
    case CHANGED_SHAPE: own->shape[1] = -NJ; break;
    case CHANGED_STRIDES: own->strides[0] = NI * NJ; own->strides[1] = -NI; own->strides[2] = 1; break;
    case CHANGED_OVERLAP: own->data = a; break;
    case CHANGED_DEVICE: own->device = 0; break;
    case CHANGED_NOWHERE: own->device = -7; break;
    case CHANGED_ROWS: own->strides[0] = (NI + 1) * NJ; own->strides[1] = NI + 1; own->strides[2] = 1; break;
    }
    return others;
}

int main(void)
{
    const char* const two = "stencil one { in a; out b; b = a }\nstencil two { in a; out b; b = a }\n";
    const char* const text = "stencil s { in a; out b; param alpha: real = 2; b = alpha * a[i+1] }";
    StencilcStencil *stencil = NULL, *other = NULL, *valueless = NULL, *freed;
    StencilcCall *call = NULL, *another = NULL;
    StencilcField field = {sizeof field}, unsized_field;
    StencilcParameter parameter = {sizeof parameter};
    const StencilcArray array = {sizeof array, "a", NULL, STENCILC_F64, 0, STENCILC_HOST, 3, {NK, NJ, NI}, {0}};
    double zero = 0;
    int number;
    memset(&unsized_field, 0, sizeof unsized_field);
    arrays[0] = arrays[1] = array;
    arrays[0].data = a;
    arrays[1].data = b;
    arrays[1].name = "b";
    for (number = 0; number < NK * NJ * NI; ++number) a[number] = number;

    if (stencilc_message()[0] != 0 || strcmp(stencilc_version(), "0.1.0") != 0) return 2;
    if (stencilc_compile(text, "s.stn", NULL, &stencil) != STENCILC_STATUS_OK) return 3;
    if (stencilc_bind(stencil, arrays, 2, &call) != STENCILC_STATUS_OK) return 4;
    if (stencilc_compile("stencil v { in a; out b; param alpha: real; b = alpha * a }", "v.stn", NULL, &valueless) != STENCILC_STATUS_OK) {
        return 14;
    }
    /* CHECKS */
    if (other != NULL || another != NULL) return 5;
    if (stencilc_name(NULL) != NULL || stencilc_field_count(NULL) != 0 || stencilc_parameter_count(NULL) != 0) return 6;
    if (stencilc_field_count(stencil) != 2 || stencilc_parameter_count(stencil) != 1) return 7;
    if (stencilc_parameter(stencil, 0, &parameter) != STENCILC_STATUS_OK || strcmp(parameter.name, "alpha") != 0) return 8;

    /* None of that has done any harm, and calls outlive their stencil. */
    freed = stencil;
    if (stencilc_free(valueless) != STENCILC_STATUS_OK) return 15;
    if (stencilc_free(stencil) != STENCILC_STATUS_OK || stencilc_free(NULL) != STENCILC_STATUS_OK) return 9;
    check(stencilc_free(freed), STENCILC_STATUS_CALL, "the handle is none of a stencil that is there: it was freed", __LINE__);
    check(stencilc_set_real(freed, "alpha", 1), STENCILC_STATUS_CALL, "the handle is none of a stencil", __LINE__);
    if (stencilc_run(call) != STENCILC_STATUS_OK || b[0] != 2 || b[NI * NJ * NK - 2] != 2 * (NI * NJ * NK - 1)) return 10;
    if (stencilc_start(call, NULL) != STENCILC_STATUS_OK || stencilc_wait(call) != STENCILC_STATUS_OK) return 11;
    if (stencilc_free_call(call) != STENCILC_STATUS_OK || stencilc_free_call(NULL) != STENCILC_STATUS_OK) return 12;
    check(stencilc_run(call), STENCILC_STATUS_CALL, "the handle is none of a call that is there", __LINE__);
    check(stencilc_free_call(call), STENCILC_STATUS_CALL, "the handle is none of a call", __LINE__);
    puts("all was told");
    return 0;
}

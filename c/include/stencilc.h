/*
 * libstencilc: stencils that are compiled when a program runs.
 *
 * Every function that can fail returns a status, 0 if all went well; what is wrong, and what mends it, stencilc_message() says.
 * No panic and no exception leaves the library. A handle that is null, was freed, or is of another kind is an error.
 *
 * Handles may be used from any thread. A call that is run by one thread keeps others waiting that want to run the same one.
 *
 * Devices are `cpu`, the interpreter; `native`, kernels on the CPU; `cuda:0` and so on; and `emulate`, which runs the kernels of GPUs on the CPU,
 * slowly, to look at each access. Memory that cannot be had while something is computed ends the process with a message.
 *
 * Made by cbindgen: header/ says how.
 */

#ifndef STENCILC_H
#define STENCILC_H

#include <stddef.h>
#include <stdint.h>

/**
 * Numbers of 64 bits: `double`.
 */
#define STENCILC_F64 1

/**
 * Numbers of 32 bits: `float`.
 */
#define STENCILC_F32 2

/**
 * Whole numbers of 32 bits: `int32_t`.
 */
#define STENCILC_I32 3

/**
 * Truth values, a byte each: 0 or 1.
 */
#define STENCILC_BOOL 4

/**
 * It is read.
 */
#define STENCILC_READ 1

/**
 * It is written, where the stencil computes.
 */
#define STENCILC_WRITE 2

/**
 * It is read, and then written.
 */
#define STENCILC_UPDATE 3

/**
 * In the host's memory.
 */
#define STENCILC_HOST -1

/**
 * What came of a call.
 */
typedef enum StencilcStatus {
    /**
     * It went well.
     */
    STENCILC_STATUS_OK = 0,
    /**
     * The input, a text or an array, or the machine does not allow it.
     */
    STENCILC_STATUS_INPUT = 1,
    /**
     * The call contradicts itself, or names what does not exist.
     */
    STENCILC_STATUS_CALL = 2,
    /**
     * A check failed, or there is a mistake in the library.
     */
    STENCILC_STATUS_CHECK = 3,
} StencilcStatus;

/**
 * A stencil that is bound to arrays.
 */
typedef struct StencilcCall StencilcCall;

/**
 * A mesh: sets of elements, and maps between them.
 */
typedef struct StencilcMesh StencilcMesh;

/**
 * A program that was begun, or a stencil as one, with its fields.
 */
typedef struct StencilcRun StencilcRun;

/**
 * A stencil or program of a text, and how it is to be computed.
 */
typedef struct StencilcStencil StencilcStencil;

/**
 * What a stencil or program declares as a field. Texts are there until the stencil is freed.
 */
typedef struct StencilcField {
    /**
     * The bytes of this struct, as the caller knows it: it may grow at its end.
     */
    size_t size;
    /**
     * Its name.
     */
    const char *name;
    /**
     * Its documentation.
     */
    const char *documentation;
    /**
     * What is done with it: STENCILC_READ, STENCILC_WRITE or STENCILC_UPDATE.
     */
    int32_t role;
    /**
     * The type of its elements in the precision that is chosen: STENCILC_F64 and so on.
     */
    int32_t element;
    /**
     * Whether it has the axes j and i, the last two of its array; over a mesh, whether it has an axis of elements.
     */
    int32_t has_columns;
    /**
     * Whether it has the axis k, the first of its array: 0, 1, or 2 where it has one level more, between the levels.
     */
    int32_t has_levels;
    /**
     * Over a mesh: of which elements it has numbers, `cell`, or `cell.edges` for each slot of a map; else an empty text.
     */
    const char *on;
    /**
     * Over a mesh: how many slots the map has, which are an axis behind that of elements; 0 if it is of no map, and there is no such axis.
     */
    int32_t slots;
    /**
     * Over a mesh: how many numbers there are each time; more than 1 are the last axis.
     */
    int32_t parts;
} StencilcField;

/**
 * What a stencil or program declares as a parameter. Texts are there until the stencil is freed.
 */
typedef struct StencilcParameter {
    /**
     * The bytes of this struct, as the caller knows it: it may grow at its end.
     */
    size_t size;
    /**
     * Its name.
     */
    const char *name;
    /**
     * Its documentation.
     */
    const char *documentation;
    /**
     * What its value is: STENCILC_F64 of a real number, STENCILC_I32, or STENCILC_BOOL.
     */
    int32_t element;
    /**
     * Whether it has a value if none is given.
     */
    int32_t has_default;
} StencilcParameter;

/**
 * An array of the caller's. Of a field on (i, j, k) the axes are k, j and i, of which i is the last; over a mesh they are levels, elements,
 * slots and parts, of which a field has some.
 */
typedef struct StencilcArray {
    /**
     * The bytes of this struct, as the caller knows it: it may grow at its end.
     */
    size_t size;
    /**
     * The name of its field; of an array that makes a mesh, what it is.
     */
    const char *name;
    /**
     * Its first element.
     */
    void *data;
    /**
     * The type of its elements: STENCILC_F64 and so on.
     */
    int32_t element;
    /**
     * What is done with it: STENCILC_READ and so on; 0 for what its field is declared for. Of a field that is read and written two arrays
     * may be given, one to be read and one to be written; one that is updated is copied aside before each run.
     */
    int32_t role;
    /**
     * Where it lies: STENCILC_HOST, or the number of the GPU.
     */
    int32_t device;
    /**
     * How many axes it has: 1 to 4.
     */
    int32_t axes;
    /**
     * How many elements it has along each axis, slowest first.
     */
    int64_t shape[4];
    /**
     * Elements from one to the next along each axis; all 0 for those of an array of C, without room between rows. Where some are 0 and
     * others not, what is read is the same all along that axis, and nothing can be written.
     */
    int64_t strides[4];
} StencilcArray;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, as `0.1.0`.
 */
const char *stencilc_version(void);

/**
 * What was wrong with the last call of this thread that failed, and what mends it; empty if none has. It is there until another call of
 * this thread fails.
 */
const char *stencilc_message(void);

/**
 * Compiles a text. Messages call it by `name`; `stencil` says which of its stencils and programs is meant, and may be null where it has one
 * stencil on a grid, or one in all.
 *
 * What the caller sees to:
 * Texts end with a zero byte, and there is room for a handle.
 */
enum StencilcStatus stencilc_compile(const char *source,
                                     const char *name,
                                     const char *stencil,
                                     struct StencilcStencil **out);

/**
 * Compiles a file, or what comes along: `file` is a path, or a name without dots and slashes. `stencil` as in
 * stencilc_compile().
 *
 * What the caller sees to:
 * Texts end with a zero byte, and there is room for a handle.
 */
enum StencilcStatus stencilc_load(const char *file, const char *stencil, struct StencilcStencil **out);

/**
 * Frees a stencil or program; null is none. Calls and runs of it stay.
 */
enum StencilcStatus stencilc_free(struct StencilcStencil *stencil);

/**
 * The name of a stencil or program, which is there until it is freed; null if the handle is none.
 */
const char *stencilc_name(const struct StencilcStencil *stencil);

/**
 * Says what `real` is, of all that is bound or begun from now on: STENCILC_F64, which it is if nothing is said, or STENCILC_F32.
 */
enum StencilcStatus stencilc_set_precision(struct StencilcStencil *stencil,
                                           int32_t element);

/**
 * Says what computes all that is bound or begun from now on: `cpu`, the interpreter; `native`, kernels on the CPU, which the C++ compiler makes;
 * `cuda:0` and so on. If nothing is said, it is the GPU where arrays lie, or else `cpu`.
 *
 * What the caller sees to:
 * The text ends with a zero byte.
 */
enum StencilcStatus stencilc_set_device(struct StencilcStencil *stencil,
                                        const char *device);

/**
 * Says on how many devices all is computed that is begun from now on: on GPUs with the numbers that follow, or as many parts on the CPU. The
 * bits are those of one.
 */
enum StencilcStatus stencilc_set_devices(struct StencilcStencil *stencil,
                                         size_t count);

/**
 * Says how many levels there are over the meshes of all that is begun from now on, if no array tells.
 */
enum StencilcStatus stencilc_set_levels(struct StencilcStencil *stencil, size_t levels);

/**
 * Chooses the kernel of all on grids that is bound or begun from now on, by options of the command line, as `--access tile --tile 2x4`.
 *
 * What the caller sees to:
 * The text ends with a zero byte.
 */
enum StencilcStatus stencilc_set_options(struct StencilcStencil *stencil,
                                         const char *options);

/**
 * Sets a parameter that is a real number, for all that is bound or begun from now on.
 *
 * What the caller sees to:
 * The text ends with a zero byte.
 */
enum StencilcStatus stencilc_set_real(struct StencilcStencil *stencil, const char *name, double value);

/**
 * Sets a parameter that is a whole number, for all that is bound or begun from now on.
 *
 * What the caller sees to:
 * The text ends with a zero byte.
 */
enum StencilcStatus stencilc_set_int(struct StencilcStencil *stencil, const char *name, int32_t value);

/**
 * Sets a parameter that is a truth value, 0 if it is not, for all that is bound or begun from now on.
 *
 * What the caller sees to:
 * The text ends with a zero byte.
 */
enum StencilcStatus stencilc_set_bool(struct StencilcStencil *stencil, const char *name, int value);

/**
 * How many fields a stencil or program has; 0 if the handle is none.
 */
size_t stencilc_field_count(const struct StencilcStencil *stencil);

/**
 * How many parameters a stencil or program has; 0 if the handle is none.
 */
size_t stencilc_parameter_count(const struct StencilcStencil *stencil);

/**
 * Says what a field of a stencil or program is, by its number. `size` of the struct has to be set.
 *
 * What the caller sees to:
 * There is room for the struct.
 */
enum StencilcStatus stencilc_field(const struct StencilcStencil *stencil, size_t number, struct StencilcField *out);

/**
 * Says what a parameter of a stencil or program is, by its number. `size` of the struct has to be set.
 *
 * What the caller sees to:
 * There is room for the struct.
 */
enum StencilcStatus stencilc_parameter(const struct StencilcStencil *stencil,
                                       size_t number,
                                       struct StencilcParameter *out);

/**
 * Binds a stencil to arrays, which stay the caller's: checks all that is said, and makes the kernel.
 *
 * What the caller sees to:
 * There are as many arrays, and room for a handle. The arrays are there until the call is freed, or others are lent to it, and what was
 * started is done; meanwhile nobody else writes them while it runs, or reads those that it writes.
 */
enum StencilcStatus stencilc_bind(const struct StencilcStencil *stencil,
                                  const struct StencilcArray *arrays,
                                  size_t count,
                                  struct StencilcCall **out);

/**
 * Lends other arrays to a call, which lie as those did that it was bound to: nothing is compiled again.
 *
 * What the caller sees to:
 * As of stencilc_bind(); and what was started on the others is done.
 */
enum StencilcStatus stencilc_lend(struct StencilcCall *call, const struct StencilcArray *arrays, size_t count);

/**
 * Computes, and waits for it.
 */
enum StencilcStatus stencilc_run(struct StencilcCall *call);

/**
 * Starts to compute in a stream, a `cudaStream_t` or null for the default one, and returns at once. On the CPU all is done when it
 * returns.
 *
 * What the caller sees to:
 * The stream is one of the primary context of the GPU where the arrays lie.
 */
enum StencilcStatus stencilc_start(struct StencilcCall *call,
                                   void *stream);

/**
 * Waits until all that was started is done.
 */
enum StencilcStatus stencilc_wait(struct StencilcCall *call);

/**
 * Says which cells are computed, along k, j and i: from `first` on, and before `end`.
 *
 * What the caller sees to:
 * There is room for three numbers each.
 */
enum StencilcStatus stencilc_region(const struct StencilcCall *call, int64_t *first, int64_t *end);

/**
 * Frees a call, once what it has started is done; null is none. The arrays stay the caller's.
 */
enum StencilcStatus stencilc_free_call(struct StencilcCall *call);

/**
 * Reads the file of a mesh.
 *
 * What the caller sees to:
 * The text ends with a zero byte, and there is room for a handle.
 */
enum StencilcStatus stencilc_mesh_read(const char *file, struct StencilcMesh **out);

/**
 * Makes a mesh of arrays, which are copied. The name of each says what it is: `edge.cells -> cell`, a map of shape (edges, slots) whose
 * numbers are those of cells; `area on cell`, a field of shape (cells) or (cells, parts); `sign on cell.edges`, one of shape (cells, slots);
 * `set cell`, one number, where nothing else tells how many cells there are. `first` is the number of the first element of each set, 0 as
 * in C or 1 as in Fortran; the number before stands where a map leads to no element.
 *
 * What the caller sees to:
 * There are as many arrays, of the host's memory, and room for a handle.
 */
enum StencilcStatus stencilc_mesh_make(const struct StencilcArray *arrays,
                                       size_t count,
                                       int32_t first,
                                       struct StencilcMesh **out);

/**
 * Says how many elements a set of a mesh has.
 *
 * What the caller sees to:
 * The text ends with a zero byte, and there is room for a number.
 */
enum StencilcStatus stencilc_mesh_size(const struct StencilcMesh *mesh, const char *set, size_t *size);

/**
 * Frees a mesh; null is none. What was begun over it stays.
 */
enum StencilcStatus stencilc_mesh_free(struct StencilcMesh *mesh);

/**
 * Begins a program, or a stencil as one: checks all that is said, makes the kernels, and copies the arrays of its inputs to its fields. What
 * is on a grid has no mesh, and null is given; its extents are those of the arrays. Numbers may be of another type than their field's, if each can
 * be held; what else is said of arrays, as their roles, makes no difference.
 *
 * What the caller sees to:
 * There are as many arrays, of the host's memory, and room for a handle.
 */
enum StencilcStatus stencilc_run_begin(const struct StencilcStencil *stencil,
                                       const struct StencilcMesh *mesh,
                                       const struct StencilcArray *arrays,
                                       size_t count,
                                       struct StencilcRun **out);

/**
 * Goes on from a file that stencilc_run_save() or `stencilc run --checkpoint` has written, of the same text and mesh. Fields are in it; parameters
 * are set again.
 *
 * What the caller sees to:
 * The text ends with a zero byte, and there is room for a handle.
 */
enum StencilcStatus stencilc_run_resume(const struct StencilcStencil *stencil,
                                        const struct StencilcMesh *mesh,
                                        const char *file,
                                        struct StencilcRun **out);

/**
 * Goes on by so many steps, or fewer at the end: how often the loops of the program are gone through that stand in no other. With the last
 * of them, what stands behind is done, too; UINT64_MAX goes on to the end. `done` says how many there were, and may be null. A GPU may
 * still compute when this returns.
 *
 * What the caller sees to:
 * There is room for a number, unless it is null.
 */
enum StencilcStatus stencilc_run_step(struct StencilcRun *run,
                                      uint64_t times,
                                      uint64_t *done);

/**
 * Says how many steps were done, those before a file was written included, and how many there are in all, as far as that is known.
 *
 * What the caller sees to:
 * There is room for two numbers.
 */
enum StencilcStatus stencilc_run_progress(const struct StencilcRun *run,
                                          uint64_t *done,
                                          uint64_t *total);

/**
 * Waits until all is computed.
 */
enum StencilcStatus stencilc_run_wait(struct StencilcRun *run);

/**
 * Copies what a field holds into an array of its shape and type.
 *
 * What the caller sees to:
 * There is an array, of the host's memory, that nobody else looks at meanwhile.
 */
enum StencilcStatus stencilc_run_get(const struct StencilcRun *run, const struct StencilcArray *array);

/**
 * Gives a field other numbers, which are copied.
 *
 * What the caller sees to:
 * There is an array, of the host's memory.
 */
enum StencilcStatus stencilc_run_put(struct StencilcRun *run, const struct StencilcArray *array);

/**
 * Says what a number of a program is now, such as what a reduction came to.
 *
 * What the caller sees to:
 * The text ends with a zero byte, and there is room for a number.
 */
enum StencilcStatus stencilc_run_number(const struct StencilcRun *run, const char *name, double *value);

/**
 * Keeps all that a run holds in a file, from which stencilc_run_resume() goes on, on any device.
 *
 * What the caller sees to:
 * The text ends with a zero byte.
 */
enum StencilcStatus stencilc_run_save(const struct StencilcRun *run, const char *file);

/**
 * Frees a run, with all that it holds; null is none.
 */
enum StencilcStatus stencilc_run_free(struct StencilcRun *run);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STENCILC_H */

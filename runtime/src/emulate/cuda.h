// Threads of CUDA C++, on the emulated device.
// Kernels are given these when they are called; the functions that they call find them here.
struct Component {
    unsigned (*value)();
    operator unsigned() const { return value(); }
};
struct Coordinate {
    Component x, y, z;
};
#define STENCILC_COORDINATE(of) {{[] { return of.x; }}, {[] { return of.y; }}, {[] { return of.z; }}}
constexpr Coordinate threadIdx = STENCILC_COORDINATE(emulated::current->index);
constexpr Coordinate blockIdx = STENCILC_COORDINATE(emulated::current->block->index);
constexpr Coordinate blockDim = STENCILC_COORDINATE(emulated::machine->block_extents);
constexpr Coordinate gridDim = STENCILC_COORDINATE(emulated::machine->grid_extents);
constexpr int warpSize = 32;

// Shared memory: STENCILC_SHARED(float, tile, [18][18]); and STENCILC_DYNAMIC_SHARED(float, tile).
#define STENCILC_SHARED(type, name, extents) \
    type (&name) extents = *reinterpret_cast<type (*) extents>( \
        emulated::shared_array(__COUNTER__, #name, sizeof(type extents)))
#define STENCILC_DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(emulated::current->block->arena)

// Barriers of a block. Each tells its line, so that one that is reached in two places is found.
inline void __syncthreads(int line = __builtin_LINE())
{
    emulated::block_barrier(emulated::Operation::syncthreads, 0, line);
}
inline int __syncthreads_count(int value, int line = __builtin_LINE())
{
    return emulated::block_barrier(emulated::Operation::syncthreads_count, value, line);
}
inline int __syncthreads_and(int value, int line = __builtin_LINE())
{
    return emulated::block_barrier(emulated::Operation::syncthreads_and, value, line);
}
inline int __syncthreads_or(int value, int line = __builtin_LINE())
{
    return emulated::block_barrier(emulated::Operation::syncthreads_or, value, line);
}

// Warps.
inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE())
{
    emulated::warp_meet(emulated::Operation::syncwarp, mask, 0, 0, line);
}
inline int __any_sync(unsigned mask, int value, int line = __builtin_LINE())
{
    return int(emulated::warp_meet(emulated::Operation::any, mask, value != 0, 0, line));
}
inline int __all_sync(unsigned mask, int value, int line = __builtin_LINE())
{
    return int(emulated::warp_meet(emulated::Operation::all, mask, value != 0, 0, line));
}
inline unsigned __ballot_sync(unsigned mask, int value, int line = __builtin_LINE())
{
    return unsigned(emulated::warp_meet(emulated::Operation::ballot, mask, value != 0, 0, line));
}
template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE())
{
    const int lane = int(emulated::current->number % 32), first = lane / width * width;
    return emulated::shuffle(emulated::Operation::shfl, mask, value, first + (source & (width - 1)), line);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE())
{
    const int lane = int(emulated::current->number % 32), source = lane - int(by);
    return emulated::shuffle(emulated::Operation::shfl_up, mask, value, source >= lane / width * width ? source : lane, line);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE())
{
    const int lane = int(emulated::current->number % 32), source = lane + int(by);
    const int end = lane / width * width + width;
    return emulated::shuffle(emulated::Operation::shfl_down, mask, value, source < end ? source : lane, line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, int line = __builtin_LINE())
{
    const int lane = int(emulated::current->number % 32), source = lane ^ flip;
    const int end = lane / width * width + width;
    return emulated::shuffle(emulated::Operation::shfl_xor, mask, value, source < end ? source : lane, line);
}

// Threads take turns, so nothing comes between.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
namespace emulated {
template <class T> T exchange(T* place, T value)
{
    const T before = *place;
    *place = value;
    return before;
}
}
inline int atomicAdd(int* place, int value) { return emulated::exchange(place, int(unsigned(*place) + unsigned(value))); }
inline unsigned atomicAdd(unsigned* place, unsigned value) { return emulated::exchange(place, *place + value); }
inline unsigned long long atomicAdd(unsigned long long* place, unsigned long long value)
{
    return emulated::exchange(place, *place + value);
}
inline float atomicAdd(float* place, float value) { return emulated::exchange(place, *place + value); }
inline double atomicAdd(double* place, double value) { return emulated::exchange(place, *place + value); }
inline int atomicMin(int* place, int value) { return emulated::exchange(place, min(*place, value)); }
inline int atomicMax(int* place, int value) { return emulated::exchange(place, max(*place, value)); }
inline unsigned atomicMin(unsigned* place, unsigned value) { return emulated::exchange(place, min(*place, value)); }
inline unsigned atomicMax(unsigned* place, unsigned value) { return emulated::exchange(place, max(*place, value)); }
inline int atomicExch(int* place, int value) { return emulated::exchange(place, value); }
inline unsigned atomicExch(unsigned* place, unsigned value) { return emulated::exchange(place, value); }
inline int atomicCAS(int* place, int old, int value) { return emulated::exchange(place, *place == old ? value : *place); }

// The words of CUDA C++ that need no header.
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__

#define threadIdx (emulated::current->index)
#define blockIdx (emulated::current->block->index)
#define blockDim (emulated::machine->block_extents)
#define gridDim (emulated::machine->grid_extents)
constexpr int warpSize = 32;

// Shared memory: STENCILC_SHARED(float, tile, [18][18]); and STENCILC_DYNAMIC_SHARED(float, tile).
#define STENCILC_SHARED(type, name, extents) \
    type (&name) extents = *reinterpret_cast<type (*) extents>( \
        emulated::shared_array(__COUNTER__, #name, sizeof(type extents)))
#define STENCILC_DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(emulated::current->block->arena)

// Turns of a loop that have nothing to do with each other: for vectors, where kernels are to be fast.
#if !defined(STENCILC_NATIVE)
#define STENCILC_SIDE_BY_SIDE
#elif defined(__clang__)
#define STENCILC_SIDE_BY_SIDE _Pragma("clang loop vectorize(assume_safety)")
#else
#define STENCILC_SIDE_BY_SIDE _Pragma("GCC ivdep")
#endif

// Mathematics: what is rounded as IEEE 754 says. The C library is linked, its headers are not read.
extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double sqrt(double) noexcept;
float sqrtf(float) noexcept;
double fabs(double) noexcept;
float fabsf(float) noexcept;
double floor(double) noexcept;
float floorf(float) noexcept;
double ceil(double) noexcept;
float ceilf(float) noexcept;
double trunc(double) noexcept;
float truncf(float) noexcept;
double rint(double) noexcept;
float rintf(float) noexcept;
double nearbyint(double) noexcept;
float nearbyintf(float) noexcept;
double round(double) noexcept;
float roundf(float) noexcept;
double fmod(double, double) noexcept;
float fmodf(float, float) noexcept;
double copysign(double, double) noexcept;
double nan(const char*) noexcept;
float nanf(const char*) noexcept;
float copysignf(float, float) noexcept;
double exp(double) noexcept;
float expf(float) noexcept;
double log(double) noexcept;
float logf(float) noexcept;
double sin(double) noexcept;
float sinf(float) noexcept;
double cos(double) noexcept;
float cosf(float) noexcept;
double tan(double) noexcept;
float tanf(float) noexcept;
double atan(double) noexcept;
float atanf(float) noexcept;
double tanh(double) noexcept;
float tanhf(float) noexcept;
double cbrt(double) noexcept;
float cbrtf(float) noexcept;
double pow(double, double) noexcept;
float powf(float, float) noexcept;
double atan2(double, double) noexcept;
float atan2f(float, float) noexcept;
double fmin(double, double) noexcept;
float fminf(float, float) noexcept;
double fmax(double, double) noexcept;
float fmaxf(float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
int abs(int) noexcept;
}
inline bool isnan(double x) { return x != x; }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }

namespace emulated {
template <class To, class From> To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
}
inline long long __double_as_longlong(double x) { return emulated::same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated::same_bits<double>(x); }
inline int __float_as_int(float x) { return emulated::same_bits<int>(x); }
inline float __int_as_float(int x) { return emulated::same_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulated::same_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulated::same_bits<float>(x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low)
{
    return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }

// Vectors, as wide loads and stores move them.
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

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

// Loads and stores that say how long a cache is to keep what they touch.
template <class T> T __ldg(const T* place) { return *place; }
template <class T> T __ldcg(const T* place) { return *place; }
template <class T> T __ldca(const T* place) { return *place; }
template <class T> T __ldcs(const T* place) { return *place; }
template <class T> T __ldlu(const T* place) { return *place; }
template <class T> T __ldcv(const T* place) { return *place; }
template <class T> void __stwb(T* place, T value) { *place = value; }
template <class T> void __stcg(T* place, T value) { *place = value; }
template <class T> void __stcs(T* place, T value) { *place = value; }
template <class T> void __stwt(T* place, T value) { *place = value; }

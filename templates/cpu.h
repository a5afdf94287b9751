// CUDA C++ on a CPU: its words, and its functions that need no other threads. The emulator puts this before kernels, and so does what
// `build --host` writes.
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__

// Turns of a loop that have nothing to do with each other: for vectors, where kernels are to be fast.
#if !defined(STENCILC_NATIVE)
#define STENCILC_SIDE_BY_SIDE
#elif defined(__clang__)
#define STENCILC_SIDE_BY_SIDE _Pragma("clang loop vectorize(assume_safety)")
#else
#define STENCILC_SIDE_BY_SIDE _Pragma("GCC ivdep")
#endif

// Stands where kernels have `#pragma unroll`, if they are to be fast: of a loop within a loop compilers make no vectors.
#if defined(__clang__)
#define STENCILC_UNROLLED _Pragma("unroll")
#else
#define STENCILC_UNROLLED _Pragma("GCC unroll 16")
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
template <class To, class From> inline To converted(From from) { return To(from); }
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

// Lets what is at a place come to the caches.
inline void prefetch(const void* place) { __builtin_prefetch(place); }

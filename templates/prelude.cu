// Functions and types that kernels bring along, beside operations of the language. A kernel gets those that it needs, and those that the
// first line of each says that these use; each stands after what it uses. Several of one name are of different things (`of`). Lines that
// begin with `//-` are for readers of this file alone. `NUMBER` stands for a type.

//: real_turned of f64
//- A number with the other sign where `turn` is the bit of the sign. Devices negate a double as they add two.
static __device__ __forceinline__ double real_turned(const double x, const int turn)
{
    return __hiloint2double(__double2hiint(x) ^ turn, __double2loint(x));
}

//: real_turned of f32
static __device__ __forceinline__ float real_turned(const float x, const int turn)
{
    return __int_as_float(__float_as_int(x) ^ turn);
}

//: real_inverse of f64
//- Divisions that share an inverse, of kernels that are tried.
//- Bounds are such that no step overflows, and that what is left of a division is exact. A double's first half, looked at as a
//- single, is in the order of doubles: 1e-5 stands for 2^-141, 1e5 for 2^125, 1e-25 for 2^-670, 1e25 for 2^655.
//- A divisor of 0 is usual, too: where a condition guards a division, its inverse is made before that is asked. The approximate inverse
//- is infinite then, and the first product is the quotient.
static __device__ __forceinline__ double real_inverse(const double b, bool& is_usual)
{
    const float size = fabsf(__int_as_float(__double2hiint(b)));
    is_usual = is_usual & (((size > 1e-5f) & (size < 1e5f)) | (b == 0.0));
#ifdef __CUDA_ARCH__
    double rough;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(b));
    // As the device does: without this bit, inverses of numbers with all bits set come out too small.
    const double first = __hiloint2double(__double2hiint(rough), 1);
    const double error = fma(-b, first, 1.0);
    const double second = fma(first, fma(error, error, error), first);
    return b == 0.0 ? rough : fma(second, fma(-b, second, 1.0), second);
#else
    return 1.0 / b;
#endif
}

//: real_quotient of f64
static __device__ __forceinline__ double real_quotient(const double a, const double b, const double inverse, const bool is_quick, bool& is_usual)
{
    if (!is_quick) return a / b;
    const double first = a * inverse;
    const double second = fma(inverse, fma(-b, first, a), first);
    const float size = fabsf(__int_as_float(__double2hiint(second)));
    const bool is_plain = (a == 0.0) | (b == 0.0);
    is_usual = is_usual & (((size > 1e-25f) & (size < 1e25f)) | is_plain);
    return is_plain ? first : second;
}

//: real_inverse of f32
static __device__ __forceinline__ float real_inverse(const float b, bool& is_usual)
{
    const float size = fabsf(b);
    is_usual = is_usual & (((size > 1e-9f) & (size < 1e9f)) | (b == 0.0f));
#ifdef __CUDA_ARCH__
    float first;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(first) : "f"(b));
    return b == 0.0f ? first : fmaf(first, fmaf(-b, first, 1.0f), first);
#else
    return 1.0f / b;
#endif
}

//: real_quotient of f32
static __device__ __forceinline__ float real_quotient(const float a, const float b, const float inverse, const bool is_quick, bool& is_usual)
{
    if (!is_quick) return a / b;
    const float first = a * inverse;
    const float second = fmaf(inverse, fmaf(-b, first, a), first);
    const float third = fmaf(inverse, fmaf(-b, second, a), second);
    const float size = fabsf(third);
    const bool is_plain = (a == 0.0f) | (b == 0.0f);
    is_usual = is_usual & (((size > 1e-18f) & (size < 1e18f)) | is_plain);
    return is_plain ? first : third;
}

//: Watch
//- What a checked kernel begins with.
#define STENCILC_METHOD __device__ __forceinline__
/* Looks at every index: the first that leads elsewhere than it should is written down. */
struct Watch {
    long long* report;   // faults; site, index, column and level of the first
    const int* columns;  // the column of each place in the plane, or -1
    long long plane;

    STENCILC_METHOD void tell(unsigned site, long long index, long long column, int k) const
    {
        if (atomicAdd((unsigned long long*)report, 1ull) != 0) return;
        report[1] = site;
        report[2] = index;
        report[3] = column;
        report[4] = k;
    }

    /* Whether `index` is on `level`, in the column `shift` away from the thread's own. */
    STENCILC_METHOD bool allows(unsigned site, long long index, int shift, int level, int levels, long long column, int k) const
    {
        // Where a level does not exist, the own one is read for a value that is then not chosen.
        const long long place = index - (level < 0 || level >= levels ? k : level) * plane;
        const bool is_inside = place >= 0 && place < plane && column >= 0 && column < plane;
        const bool is_right = is_inside && columns[place] >= 0 && columns[place] == columns[column] + shift;
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }

    /* The same where columns stand in no rows: whether it is in the column of a neighbour. */
    STENCILC_METHOD bool leads(unsigned site, long long index, int neighbour, int level, int levels, long long column, int k) const
    {
        const long long place = index - (level < 0 || level >= levels ? k : level) * plane;
        const bool is_inside = place >= 0 && place < plane && column >= 0 && column < plane;
        const bool is_right = is_inside && columns[place] >= 0 && columns[place] == columns[neighbour * plane + column];
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }

    /* The same for a field without columns. */
    STENCILC_METHOD bool allows(unsigned site, long long index, int level, int levels, long long column, int k) const
    {
        const bool is_right = index == (level < 0 || level >= levels ? k : level);
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }
};

struct WatchedTable {
    const int* entries;
    long long length;
    unsigned site;
    Watch watch;

    STENCILC_METHOD int operator[](long long index) const
    {
        if (index >= 0 && index < length) return entries[index];
        watch.tell(site, index, -1, -1);
        return 0;
    }
};

//: neighbour_of of tables
//- The place of a cell's neighbour. Tables are a type of their own where they are watched.
template <class Table>
static __device__ __forceinline__ int neighbour_of(const Table& table, int start, int cell)
{
    return cell + table[start + cell];
}

//: neighbour_of of patterns
//- The same where cells have patterns.
template <class Patterns, class Table>
static __device__ __forceinline__ int neighbour_of(const Patterns& pattern, const Table& table, int start, int cell)
{
    return cell + table[start + pattern[cell]];
}

//: Run
/* N elements that follow each other, moved at once. */
template <class T, int N> struct alignas(N * sizeof(T)) Run {
    T at[N];
};

//: load_run uses Run
template <int N, class T> static __device__ __forceinline__ Run<T, N> load_run(const T* first)
{
    return *reinterpret_cast<const Run<T, N>*>(first);
}

//: store_run uses Run
template <class T, class... Values> static __device__ __forceinline__ void store_run(T* first, Values... values)
{
    *reinterpret_cast<Run<T, sizeof...(Values)>*>(first) = {{T(values)...}};
}

//: interleaved
/* The index of element i of an array that shares blocks of 32 with N - 1 others. */
template <int N, class Index> static __device__ __forceinline__ Index interleaved(Index i)
{
    return (i & ~Index(31)) * N + (i & 31);
}

//: add_2
//- Adds a thread's numbers at an index, or nowhere if that is -1. Its lanes turn them round: lane n has then number n of each. Numbers
//- a distance apart change places with those of the lane as far away: rows become columns.
static __device__ __forceinline__ void add_2(NUMBER* const to, const int at, NUMBER v0, NUMBER v1)
{
    const int lane = threadIdx.x % 2, first = threadIdx.x % 32 - lane;
    { const bool is_high = lane & 1; const NUMBER got = __shfl_xor_sync(0xffffffffu, is_high ? v0 : v1, 1); if (is_high) v0 = got; else v1 = got; }
    const int at_0 = __shfl_sync(0xffffffffu, at, first + 0);
    const int at_1 = __shfl_sync(0xffffffffu, at, first + 1);
    if (at_0 == at_1) v1 = v0 + v1; else if (at_0 >= 0) atomicAdd(to + at_0 + lane, v0);
    if (at_1 >= 0) atomicAdd(to + at_1 + lane, v1);
}

//: add_4
static __device__ __forceinline__ void add_4(NUMBER* const to, const int at, NUMBER v0, NUMBER v1, NUMBER v2, NUMBER v3)
{
    const int lane = threadIdx.x % 4, first = threadIdx.x % 32 - lane;
    { const bool is_high = lane & 1; const NUMBER got = __shfl_xor_sync(0xffffffffu, is_high ? v0 : v1, 1); if (is_high) v0 = got; else v1 = got; }
    { const bool is_high = lane & 1; const NUMBER got = __shfl_xor_sync(0xffffffffu, is_high ? v2 : v3, 1); if (is_high) v2 = got; else v3 = got; }
    { const bool is_high = lane & 2; const NUMBER got = __shfl_xor_sync(0xffffffffu, is_high ? v0 : v2, 2); if (is_high) v0 = got; else v2 = got; }
    { const bool is_high = lane & 2; const NUMBER got = __shfl_xor_sync(0xffffffffu, is_high ? v1 : v3, 2); if (is_high) v1 = got; else v3 = got; }
    const int at_0 = __shfl_sync(0xffffffffu, at, first + 0);
    const int at_1 = __shfl_sync(0xffffffffu, at, first + 1);
    const int at_2 = __shfl_sync(0xffffffffu, at, first + 2);
    const int at_3 = __shfl_sync(0xffffffffu, at, first + 3);
    if (at_0 == at_1) v1 = v0 + v1; else if (at_0 >= 0) atomicAdd(to + at_0 + lane, v0);
    if (at_1 == at_2) v2 = v1 + v2; else if (at_1 >= 0) atomicAdd(to + at_1 + lane, v1);
    if (at_2 == at_3) v3 = v2 + v3; else if (at_2 >= 0) atomicAdd(to + at_2 + lane, v2);
    if (at_3 >= 0) atomicAdd(to + at_3 + lane, v3);
}

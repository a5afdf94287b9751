// Operations of the hardware that CUDA C++ has no word for without further headers. Each has two bodies: one for a CPU,
// for the emulator, and one for the GPU. A printed kernel gets the second of those that it uses, and of what they use.
//
// An operation begins with a line that names it and the operations that it uses, and ends where the next begins.

//: shared_address
// The address of something in shared memory, as instructions take it.
#ifndef STENCILC_EMULATED
__device__ __forceinline__ unsigned shared_address(const void* place)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}
#endif

//: copy_async uses shared_address
// Starts a copy of 4, 8 or 16 bytes from global to shared memory. Only `valid` of them are read, the rest become zero.
#ifdef STENCILC_EMULATED
template <int bytes> void copy_async(void* to, const void* from, int valid = bytes, int line = __builtin_LINE())
{
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes are copied at once");
    emulated::copy_async(to, from, bytes, valid, line);
}
#else
template <int bytes> __device__ __forceinline__ void copy_async(void* to, const void* from, int valid = bytes)
{
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes are copied at once");
    if constexpr (bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(shared_address(to)), "l"(from), "r"(valid) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :: "r"(shared_address(to)), "l"(from), "n"(bytes), "r"(valid) : "memory");
    }
}
#endif

//: copy_async_commit
// Makes a group of the copies that the thread has started since the last.
#ifdef STENCILC_EMULATED
inline void copy_async_commit() { emulated::copy_async_commit(); }
#else
__device__ __forceinline__ void copy_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
#endif

//: copy_async_wait
// Waits until at most `pending` of the thread's groups are under way. Others see its copies after a barrier.
#ifdef STENCILC_EMULATED
template <int pending> void copy_async_wait() { emulated::copy_async_wait(pending); }
#else
template <int pending> __device__ __forceinline__ void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
}
#endif

//: prefetch
// Lets what is at a place in global memory come to the second-level cache.
#ifndef STENCILC_EMULATED
__device__ __forceinline__ void prefetch(const void* place)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"(place));
}
#endif

//: mbarrier_init uses shared_address
// Makes a barrier in shared memory, 8 bytes, each phase of which ends when `count` threads have arrived and all bytes
// that they expect. Others use it after mbarrier_fence and a barrier of the block, or of the cluster.
#ifdef STENCILC_EMULATED
inline void mbarrier_init(unsigned long long* barrier, unsigned count, int line = __builtin_LINE())
{
    emulated::mbarrier_init(barrier, count, line);
}
#else
__device__ __forceinline__ void mbarrier_init(unsigned long long* barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(count) : "memory");
}
#endif

//: mbarrier_fence
// Makes new mbarriers known to the unit that copies, and to the cluster.
#ifdef STENCILC_EMULATED
inline void mbarrier_fence() {}
#else
__device__ __forceinline__ void mbarrier_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#endif

//: mbarrier_arrive uses shared_address
// Arrives at an mbarrier.
#ifdef STENCILC_EMULATED
inline void mbarrier_arrive(unsigned long long* barrier, int line = __builtin_LINE())
{
    emulated::mbarrier_arrive(barrier, 0, line);
}
#else
__device__ __forceinline__ void mbarrier_arrive(unsigned long long* barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier)) : "memory");
}
#endif

//: mbarrier_expect uses shared_address
// Arrives at an mbarrier, whose phase then also waits for as many bytes of bulk copies.
#ifdef STENCILC_EMULATED
inline void mbarrier_expect(unsigned long long* barrier, unsigned bytes, int line = __builtin_LINE())
{
    emulated::mbarrier_arrive(barrier, bytes, line);
}
#else
__device__ __forceinline__ void mbarrier_expect(unsigned long long* barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}
#endif

//: mbarrier_wait uses shared_address
// Waits until the phase of this parity has ended: 0 for the first, 1 for the second, and so on in turn.
#ifdef STENCILC_EMULATED
inline void mbarrier_wait(unsigned long long* barrier, unsigned parity, int line = __builtin_LINE())
{
    emulated::mbarrier_wait(barrier, parity, line);
}
#else
__device__ __forceinline__ void mbarrier_wait(unsigned long long* barrier, unsigned parity)
{
    unsigned over = 0;
    while (!over) {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(over) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    }
}
#endif

//: mbarrier_wait_cluster uses shared_address
// The same for what other blocks of the cluster have sent: it is seen after the wait.
#ifdef STENCILC_EMULATED
inline void mbarrier_wait_cluster(unsigned long long* barrier, unsigned parity, int line = __builtin_LINE())
{
    emulated::mbarrier_wait(barrier, parity, line);
}
#else
__device__ __forceinline__ void mbarrier_wait_cluster(unsigned long long* barrier, unsigned parity)
{
    unsigned over = 0;
    while (!over) {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(over) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    }
}
#endif

//: copy_bulk uses shared_address
// Starts a copy from global to shared memory that an mbarrier waits for: one thread's call moves all bytes. Both addresses
// and the number of bytes are multiples of 16.
#ifdef STENCILC_EMULATED
inline void copy_bulk(void* to, const void* from, unsigned bytes, unsigned long long* barrier, int line = __builtin_LINE())
{
    emulated::copy_bulk(to, from, bytes, barrier, line);
}
#else
__device__ __forceinline__ void copy_bulk(void* to, const void* from, unsigned bytes, unsigned long long* barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}
#endif

//: cluster_rank
// Which block of its cluster this is.
#ifdef STENCILC_EMULATED
inline unsigned cluster_rank() { return emulated::cluster_rank(); }
#else
__device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
#endif

//: cluster_size
// How many blocks the cluster has.
#ifdef STENCILC_EMULATED
inline unsigned cluster_size() { return emulated::machine->blocks_of_cluster; }
#else
__device__ __forceinline__ unsigned cluster_size()
{
    unsigned size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}
#endif

//: cluster_arrive
// Arrives at the cluster's barrier: what the thread wrote is seen by those that wait for it.
#ifdef STENCILC_EMULATED
inline void cluster_arrive(int line = __builtin_LINE()) { emulated::cluster_arrive(line); }
#else
__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
#endif

//: cluster_wait
// Waits until every thread of the cluster has arrived.
#ifdef STENCILC_EMULATED
inline void cluster_wait(int line = __builtin_LINE()) { emulated::cluster_wait(line); }
#else
__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif

//: cluster_shared
// Where block `rank` of the cluster has what is at `place` in this block's shared memory. No block may end while others
// still look at its memory.
#ifdef STENCILC_EMULATED
template <class T> T* cluster_shared(T* place, unsigned rank, int line = __builtin_LINE())
{
    return reinterpret_cast<T*>(emulated::cluster_shared(place, rank, line));
}
#else
template <class T> __device__ __forceinline__ T* cluster_shared(T* place, unsigned rank)
{
    T* other;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(place), "r"(rank));
    return other;
}
#endif

//: cluster_address uses shared_address
// Where block `rank` of the cluster has what is at `place` in this block's shared memory, as instructions take it.
#ifndef STENCILC_EMULATED
__device__ __forceinline__ unsigned cluster_address(const void* place, unsigned rank)
{
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(place)), "r"(rank));
    return address;
}
#endif

//: store_async uses cluster_address
// Sends 16 bytes to where block `rank` of the cluster has what is at `to` in this block's shared memory, and tells them to
// its mbarrier, which expects them (mbarrier_expect). Places are multiples of 16.
#ifdef STENCILC_EMULATED
inline void store_async(
    void* to, const void* value, unsigned rank, unsigned long long* barrier, int line = __builtin_LINE())
{
    emulated::store_async(to, value, rank, barrier, line);
}
#else
__device__ __forceinline__ void store_async(void* to, const void* value, unsigned rank, unsigned long long* barrier)
{
    const int4 bits = *static_cast<const int4*>(value);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [%0], {%1, %2, %3, %4}, [%5];"
                 :: "r"(cluster_address(to, rank)), "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w),
                    "r"(cluster_address(barrier, rank)) : "memory");
}
#endif

//: grid_barrier
// Waits until every thread of a cooperative launch has come. `state` is 0 in global memory before the first launch, and
// what it holds afterwards serves the next.
#ifdef STENCILC_EMULATED
inline void grid_barrier(unsigned* state, int line = __builtin_LINE()) { emulated::grid_barrier(state, line); }
#else
__device__ __forceinline__ void grid_barrier(unsigned* state)
{
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        // Every block adds 1, the first one what makes the sum of all 2^31: so the highest bit flips when all have come.
        const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
        __threadfence();
        const unsigned before = atomicAdd(state, first ? 0x80000000u - (blocks - 1) : 1u);
        unsigned now;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(state) : "memory");
        } while (((now ^ before) & 0x80000000u) == 0);
        __threadfence();
    }
    __syncthreads();
}
#endif

//: flag_raise
// Tells the block that waits for a flag that it can read all that this block has written. All threads of the block call.
#ifdef STENCILC_EMULATED
inline void flag_raise(unsigned* flag, int line = __builtin_LINE()) { emulated::flag_raise(flag, line); }
#else
__device__ __forceinline__ void flag_raise(unsigned* flag)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1u) : "memory");
    }
}
#endif

//: flag_wait
// Waits until another block of a cooperative launch has raised a flag, and lowers it. All threads of the block call. The
// flag is 0 in global memory before the first launch.
#ifdef STENCILC_EMULATED
inline void flag_wait(unsigned* flag, int line = __builtin_LINE()) { emulated::flag_wait(flag, line); }
#else
__device__ __forceinline__ void flag_wait(unsigned* flag)
{
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        unsigned now;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
        } while (now == 0);
        *flag = 0;
        __threadfence();
    }
    __syncthreads();
}
#endif

//: peers_meet
// Tells other GPUs that all is done that was launched before this kernel, and waits until all of them have told the same, if this block
// `waits`. `own` has numbers that are 0 before the first launch: how many launches have met, how many blocks of this one have come here,
// and for each of `count` others how many of its launches it has told of. `others` are the addresses of the numbers of theirs that this
// one tells them by; who is not there has 0. All threads of all blocks call, once: blocks along x, of at least a warp.
#ifdef STENCILC_EMULATED
inline void peers_meet(unsigned* own, const long long* others, int count, bool waits, int line = __builtin_LINE())
{
    emulated::peers_meet(own, others, count, waits, line);
}
#else
__device__ __forceinline__ void peers_meet(unsigned* own, const long long* others, int count, bool waits)
{
    if (threadIdx.x < 32) {
        const bool is_first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        const int lane = threadIdx.x;
        unsigned turn = 0;
        if (lane == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(turn) : "l"(own) : "memory");
        // What was computed before is there for all to see before anybody is told.
        if (is_first) __threadfence_system();
        turn = __shfl_sync(0xffffffffu, turn, 0) + 1;
        if (is_first) {
            for (int n = lane; n < count; n += 32) {
                if (others[n]) asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(others[n]), "r"(turn) : "memory");
            }
        }
        // Whoever comes last knows that all others have read how many launches have met.
        if (lane == 0 && atomicAdd(own + 1, 1u) == gridDim.x * gridDim.y * gridDim.z - 1) {
            own[1] = 0;
            own[0] = turn;
        }
        for (int n = lane; waits && n < count; n += 32) {
            if (!others[n]) continue;
            // Whoever never tells has failed: after a minute nobody waits for it any more.
            unsigned long long start, now;
            asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
            unsigned told;
            do {
                asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(told) : "l"(own + 2 + n) : "memory");
                asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
                if (now - start > 60000000000ull) asm volatile("trap;");
            } while (static_cast<int>(told - turn) < 0);
            // Once is enough: all that came before what was told is seen from here on.
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(told) : "l"(own + 2 + n) : "memory");
        }
    }
    __syncthreads();
}
#endif

//: load_evict_first
// Loads what nobody will read again: it leaves the cache first.
#ifdef STENCILC_EMULATED
template <class T> T load_evict_first(const T* place) { return *place; }
#else
__device__ __forceinline__ double load_evict_first(const double* place)
{
    double value;
    asm volatile("ld.global.L1::evict_first.f64 %0, [%1];" : "=d"(value) : "l"(place));
    return value;
}
__device__ __forceinline__ float load_evict_first(const float* place)
{
    float value;
    asm volatile("ld.global.L1::evict_first.f32 %0, [%1];" : "=f"(value) : "l"(place));
    return value;
}
__device__ __forceinline__ int load_evict_first(const int* place)
{
    int value;
    asm volatile("ld.global.L1::evict_first.s32 %0, [%1];" : "=r"(value) : "l"(place));
    return value;
}
#endif

//: load_evict_last
// Loads what will be read again: it leaves the cache last.
#ifdef STENCILC_EMULATED
template <class T> T load_evict_last(const T* place) { return *place; }
#else
__device__ __forceinline__ double load_evict_last(const double* place)
{
    double value;
    asm volatile("ld.global.L1::evict_last.f64 %0, [%1];" : "=d"(value) : "l"(place));
    return value;
}
__device__ __forceinline__ float load_evict_last(const float* place)
{
    float value;
    asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(value) : "l"(place));
    return value;
}
__device__ __forceinline__ int load_evict_last(const int* place)
{
    int value;
    asm volatile("ld.global.L1::evict_last.s32 %0, [%1];" : "=r"(value) : "l"(place));
    return value;
}
#endif

//: load_where
// Loads a value where a condition holds, and leaves it alone elsewhere: one instruction and no branch. Of a dozen branches
// around loads, ptxas 13.0 can lose where lanes meet again (docs/trust.md).
#ifdef STENCILC_EMULATED
template <class T> void load_where(T& value, const T* place, bool where)
{
    if (where) value = *place;
}
#else
__device__ __forceinline__ void load_where(double& value, const double* place, bool where)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.f64 %0, [%1]; }"
                 : "+d"(value)
                 : "l"(place), "r"(int(where)));
}
__device__ __forceinline__ void load_where(float& value, const float* place, bool where)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.f32 %0, [%1]; }"
                 : "+f"(value)
                 : "l"(place), "r"(int(where)));
}
__device__ __forceinline__ void load_where(int& value, const int* place, bool where)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.s32 %0, [%1]; }"
                 : "+r"(value)
                 : "l"(place), "r"(int(where)));
}
__device__ __forceinline__ void load_where(unsigned char& value, const unsigned char* place, bool where)
{
    unsigned wide = value;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.u8 %0, [%1]; }"
                 : "+r"(wide)
                 : "l"(place), "r"(int(where)));
    value = static_cast<unsigned char>(wide);
}
#endif

//: STENCILC_SHARED
// Declares an array in shared memory: STENCILC_SHARED(float, tile, [18][18]).
#ifndef STENCILC_EMULATED
#define STENCILC_SHARED(type, name, extents) __shared__ __align__(16) type name extents
#endif

//: STENCILC_DYNAMIC_SHARED
// Names the shared memory whose size the launch gives.
#ifndef STENCILC_EMULATED
extern __shared__ __align__(16) unsigned char stencilc_dynamic_shared[];
#define STENCILC_DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(stencilc_dynamic_shared)
#endif

//: STENCILC_SIDE_BY_SIDE
// Stands before a loop whose turns have nothing to do with each other: compilers for CPUs may compute several at once.
#ifndef STENCILC_EMULATED
#define STENCILC_SIDE_BY_SIDE
#endif

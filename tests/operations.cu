// A kernel for each operation of the device. Each begins with `//: name`; tests/common/device.rs says what they compute.
// `a` has 1024 numbers, `b` 8192 that are 0 before, `state` one that is 0.

//: block_barrier
extern "C" __global__ void block_barrier(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [128]);
    const int x = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = a[x];
    __syncthreads();
    b[x] = tile[127 - threadIdx.x];
}

//: dynamic_shared
extern "C" __global__ void dynamic_shared(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_DYNAMIC_SHARED(float, tile);
    const int x = blockIdx.x * 64 + threadIdx.y * 32 + threadIdx.x, own = threadIdx.y * 32 + threadIdx.x;
    // The last of 64 KiB.
    float* const end = tile + 16 * 1024 - 64;
    end[own] = a[x];
    __syncthreads();
    b[x] = end[(own + 1) % 64];
}

//: block_votes
extern "C" __global__ void block_votes(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    const int x = blockIdx.x * 96 + threadIdx.x;
    const int count = __syncthreads_count(a[x] > 0.0f);
    const int all = __syncthreads_and(a[x] > -40.0f);
    const int any = __syncthreads_or(a[x] > 48.0f);
    b[x] = float(count + 1000 * (all != 0) + 2000 * (any != 0));
}

//: shuffles
extern "C" __global__ void shuffles(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    const int x = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
    const unsigned full = 0xffffffffu;
    b[x] = __shfl_up_sync(full, a[x], 1);
    b[1024 + x] = __shfl_down_sync(full, a[x], 3);
    b[2 * 1024 + x] = __shfl_xor_sync(full, a[x], 5);
    b[3 * 1024 + x] = __shfl_sync(full, a[x], lane * 7 % 32);
    b[4 * 1024 + x] = float(__shfl_up_sync(full, double(a[x]), 2, 8));
    b[5 * 1024 + x] = float(__shfl_down_sync(full, int(a[x]), 1, 16));
    b[6 * 1024 + x] = float(__popc(__ballot_sync(full, a[x] > 0.0f)));
    b[7 * 1024 + x] = float(2 * (__any_sync(full, a[x] > 48.0f) != 0) + (__all_sync(full, a[x] > -50.0f) != 0));
}

//: half_warps
extern "C" __global__ void half_warps(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [64]);
    const int x = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
    tile[threadIdx.x] = a[x];
    const unsigned mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    __syncwarp(mask);
    b[x] = tile[threadIdx.x ^ 15] + __shfl_xor_sync(mask, a[x], 1);
}

//: copies
extern "C" __global__ void copies(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, four, [64]);
    STENCILC_SHARED(double, eight, [32]);
    STENCILC_SHARED(float4, sixteen, [16]);
    const int x = threadIdx.x;
    const float* const from = a + blockIdx.x * 64;
    copy_async<4>(&four[x], from + x, x < 50 ? 4 : 0);
    if (x < 32) copy_async<8>(&eight[x], from + 2 * x, x == 31 ? 4 : 8);
    if (x < 16) copy_async<16>(&sixteen[x], from + 4 * x);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    const int other = 63 - x;
    b[blockIdx.x * 64 + x] = four[other];
    b[1024 + blockIdx.x * 64 + x] = reinterpret_cast<float*>(eight)[other];
    b[2048 + blockIdx.x * 64 + x] = reinterpret_cast<float*>(sixteen)[other];
}

//: copies_in_stages
extern "C" __global__ void copies_in_stages(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [2][128]);
    const int x = threadIdx.x;
    copy_async<4>(&tile[0][x], a + x);
    copy_async_commit();
    for (int stage = 0; stage < 8; ++stage) {
        if (stage + 1 < 8) copy_async<4>(&tile[(stage + 1) % 2][x], a + (stage + 1) * 128 + x);
        if (stage + 2 < 8) prefetch(a + (stage + 2) * 128 + x);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        b[stage * 128 + x] = tile[stage % 2][127 - x];
        __syncthreads(); // before the tile is filled again
    }
}

//: copies_bulk
extern "C" __global__ void copies_bulk(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [2][128]);
    STENCILC_SHARED(unsigned long long, full, [2]);
    const int x = threadIdx.x;
    if (x == 0) {
        mbarrier_init(&full[0], 1);
        mbarrier_init(&full[1], 1);
        mbarrier_fence();
    }
    __syncthreads();
    if (x == 0) {
        mbarrier_expect(&full[0], 512);
        copy_bulk(tile[0], a, 512, &full[0]);
    }
    for (int stage = 0; stage < 8; ++stage) {
        const int next = stage + 1;
        if (x == 0 && next < 8) {
            mbarrier_expect(&full[next % 2], 512);
            copy_bulk(tile[next % 2], a + next * 128, 256, &full[next % 2]);
            copy_bulk(tile[next % 2] + 64, a + next * 128 + 64, 256, &full[next % 2]);
        }
        mbarrier_wait(&full[stage % 2], stage / 2 % 2);
        b[stage * 128 + x] = tile[stage % 2][127 - x];
        __syncthreads(); // before the tile is filled again
    }
}

//: arrivals
extern "C" __global__ void arrivals(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [64]);
    STENCILC_SHARED(unsigned long long, written, );
    const int x = threadIdx.x;
    if (x == 0) {
        mbarrier_init(&written, 64);
        mbarrier_fence();
    }
    __syncthreads();
    tile[x] = a[blockIdx.x * 64 + x];
    mbarrier_arrive(&written);
    mbarrier_wait(&written, 0);
    b[blockIdx.x * 64 + x] = tile[63 - x];
}

//: clusters
extern "C" __global__ void clusters(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [64]);
    const int x = blockIdx.x * 64 + threadIdx.x;
    tile[threadIdx.x] = a[x];
    cluster_arrive();
    cluster_wait();
    const unsigned other = (cluster_rank() + 1) % cluster_size();
    const float* const theirs = cluster_shared(tile, other);
    b[x] = theirs[63 - threadIdx.x] + 1000.0f * float(cluster_rank());
    cluster_arrive(); // no block ends while others look at its memory
    cluster_wait();
}

//: sends
extern "C" __global__ void sends(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    STENCILC_SHARED(float, tile, [2][128]);
    STENCILC_SHARED(unsigned long long, come, [2]);
    const int x = 4 * threadIdx.x;
    if (threadIdx.x < 2) {
        mbarrier_init(&come[threadIdx.x], 1);
        mbarrier_fence();
    }
    cluster_arrive();
    cluster_wait();
    const unsigned other = (cluster_rank() + 1) % cluster_size();
    for (int stage = 0; stage < 4; ++stage) {
        const int at = (blockIdx.x * 4 + stage) * 128;
        const float4 own = make_float4(a[at + x], a[at + x + 1], a[at + x + 2], a[at + x + 3]);
        if (threadIdx.x == 0) mbarrier_expect(&come[stage % 2], 512);
        // Each sends again only when it has what the other sent, so nothing is overwritten that is yet to be read.
        store_async(&tile[stage % 2][x], &own, other, &come[stage % 2]);
        mbarrier_wait_cluster(&come[stage % 2], stage / 2 % 2);
        STENCILC_SIDE_BY_SIDE
        for (int e = 0; e < 4; ++e) b[at + x + e] = tile[stage % 2][127 - x - e];
    }
    cluster_arrive();
    cluster_wait();
}

//: grid_steps
extern "C" __global__ void grid_steps(const float* __restrict__ a, float* b, unsigned* state)
{
    const int x = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
    b[x] = a[x];
    grid_barrier(state);
    for (int step = 0; step < 3; ++step) {
        const float* const from = b + step % 2 * n;
        float* const to = b + (step + 1) % 2 * n;
        to[x] = from[(x + 1) % n] - from[(x + n - 1) % n];
        grid_barrier(state); // the next step reads what others write
    }
}

//: flags
extern "C" __global__ void flags(const float* __restrict__ a, float* b, unsigned* state)
{
    const int x = blockIdx.x * 64 + threadIdx.x;
    float before = 0.0f;
    if (blockIdx.x > 0) {
        flag_wait(&state[blockIdx.x]);
        before = b[blockIdx.x * 64 - 1 - threadIdx.x] + float(state[blockIdx.x]);
    }
    b[x] = a[x] + before;
    if (blockIdx.x + 1 < gridDim.x) flag_raise(&state[blockIdx.x + 1]);
}

//: meetings
extern "C" __global__ void meetings(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    // Others that are not there: nobody is told, and nobody waited for.
    const long long others[2] = {0, 0};
    const int x = blockIdx.x * 64 + threadIdx.x;
    peers_meet(state, others, 2, blockIdx.x == 0);
    b[x] = a[x];
}

//: atomics
extern "C" __global__ void atomics(const float* __restrict__ a, float* b, unsigned* state)
{
    const int x = blockIdx.x * 64 + threadIdx.x;
    int* const whole = reinterpret_cast<int*>(b + 4);
    atomicAdd(b, a[x]);
    atomicAdd(reinterpret_cast<double*>(b + 2), double(a[x]));
    atomicAdd(whole, int(a[x]));
    atomicMin(whole + 1, int(a[x]));
    atomicMax(whole + 2, int(a[x]));
    atomicAdd(reinterpret_cast<unsigned*>(whole) + 3, 3u);
    __threadfence();
}

//: caches
extern "C" __global__ void caches(const float* __restrict__ a, float* __restrict__ b, unsigned* state)
{
    const int x = blockIdx.x * 64 + threadIdx.x;
    __stcs(b + x, load_evict_first(a + x) + load_evict_last(a + x) + __ldg(a + x) + __ldcs(a + x) + __ldcg(a + x));
    const float2 pair = reinterpret_cast<const float2*>(a)[x % 512];
    float own = -1;
    load_where(own, a + x, x % 3 == 0);
    int whole = 5;
    load_where(whole, reinterpret_cast<const int*>(a) + x, x % 2 == 0);
    double wide = 2;
    load_where(wide, reinterpret_cast<const double*>(a) + x / 2, x % 5 == 0);
    unsigned char byte = 7;
    load_where(byte, reinterpret_cast<const unsigned char*>(a) + x, x % 7 == 0);
    b[1024 + x] = pair.x - pair.y + own + float(whole % 16) + (wide > 1 ? 1.0f : 0.0f) + float(byte);
}

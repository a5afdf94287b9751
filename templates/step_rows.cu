// Functions on rows that a lane holds in registers. A kernel gets those that it calls, and what the first line of each says
// that these use; each stands after what it uses. `Run` is in prelude.cu, what is no function on rows in device.h.

//: load_row uses Run
/* N elements that follow each other, W at once. */
template <int W, int N, class T> static __device__ __forceinline__ void load_row(T (&row)[N], const T* from)
{
#pragma unroll
    for (int e = 0; e < N; e += W) {
        const Run<T, W> run = *reinterpret_cast<const Run<T, W>*>(from + e);
#pragma unroll
        for (int w = 0; w < W; ++w) row[e + w] = run.at[w];
    }
}

//: load_row_where uses load_where
/* N elements that follow each other, where a condition holds. */
template <int N, class T> static __device__ __forceinline__ void load_row_where(T (&row)[N], const T* from, bool where)
{
#pragma unroll
    for (int e = 0; e < N; ++e) load_where(row[e], from + e, where);
}

//: put_row uses Run
/* Stores N elements that follow each other, W at once. */
template <int W, int N, class T> static __device__ __forceinline__ void put_row(T* to, const T (&row)[N])
{
#pragma unroll
    for (int e = 0; e < N; e += W) {
        Run<T, W> run;
#pragma unroll
        for (int w = 0; w < W; ++w) run.at[w] = row[e + w];
        *reinterpret_cast<Run<T, W>*>(to + e) = run;
    }
}

//: put_between uses put_row
/* Stores those elements whose numbers lie between two, W at once where all do. */
template <int W, int N, class T>
static __device__ __forceinline__ void put_between(T* to, const T (&row)[N], int first, int end)
{
    if (first <= 0 && end >= N) {
        put_row<W>(to, row);
    } else {
#pragma unroll
        for (int e = 0; e < N; ++e) {
            if (e >= first && e < end) to[e] = row[e];
        }
    }
}

//: copy_run uses Run
/* W elements that follow each other, from one array to another. */
template <int W, class T> static __device__ __forceinline__ void copy_run(T* to, const T* from)
{
    *reinterpret_cast<Run<T, W>*>(to) = *reinterpret_cast<const Run<T, W>*>(from);
}

//: copy_row
/* A row as it is, possibly in another type. */
template <int N, class To, class T> static __device__ __forceinline__ void copy_row(To (&to)[N], const T (&row)[N])
{
#pragma unroll
    for (int e = 0; e < N; ++e) to[e] = To(row[e]);
}

//: widen_row
/* A row with L more columns at the left and R at the right, which are the neighbouring lanes'. */
template <int L, int R, int N, class To, class T>
static __device__ __forceinline__ void widen_row(To (&wide)[L + N + R], const T (&row)[N], int lane)
{
#pragma unroll
    for (int e = 0; e < N; ++e) wide[L + e] = To(row[e]);
#pragma unroll
    for (int x = 1; x <= L; ++x)
        wide[L - x] = To(__shfl_sync(0xffffffffu, row[(N - x % N) % N], (lane + 32 - (x + N - 1) / N % 32) % 32));
#pragma unroll
    for (int x = 0; x < R; ++x)
        wide[L + N + x] = To(__shfl_sync(0xffffffffu, row[x % N], (lane + 1 + x / N) % 32));
}

//: join_rows
/* The same where the first and the last lane have loaded what lies beyond the strip. */
template <int L, int R, int N, int E, class To, class T>
static __device__ __forceinline__ void join_rows(To (&wide)[L + N + R], const T (&row)[N], const T (&beyond)[E], int lane)
{
#pragma unroll
    for (int e = 0; e < N; ++e) wide[L + e] = To(row[e]);
#pragma unroll
    for (int x = 1; x <= L; ++x) {
        const T left = __shfl_up_sync(0xffffffffu, row[N - x], 1);
        wide[L - x] = To(lane == 0 ? beyond[E - x] : left);
    }
#pragma unroll
    for (int x = 0; x < R; ++x) {
        const T right = __shfl_down_sync(0xffffffffu, row[x], 1);
        wide[L + N + x] = To(lane == 31 ? beyond[x] : right);
    }
}

//: push_row uses Run store_async
/* Sends a row to another block's shared memory, where a barrier counts its bytes: each lane 16 bytes at a time. */
template <int N, class T> static __device__ __forceinline__ void push_row(
    T* to, const T (&row)[N], int lane, unsigned rank, unsigned long long* barrier)
{
    constexpr int W = 16 / sizeof(T);
#pragma unroll
    for (int e = 0; e < N; e += W) {
        Run<T, W> run;
#pragma unroll
        for (int w = 0; w < W; ++w) run.at[w] = row[e + w];
        store_async(to + e * 32 + lane * W, &run, rank, barrier);
    }
}

//: pull_row uses Run
/* Takes a row that has been sent. */
template <int N, class T> static __device__ __forceinline__ void pull_row(T (&row)[N], const T* from, int lane)
{
    constexpr int W = 16 / sizeof(T);
#pragma unroll
    for (int e = 0; e < N; e += W) {
        const Run<T, W> run = *reinterpret_cast<const Run<T, W>*>(from + e * 32 + lane * W);
#pragma unroll
        for (int w = 0; w < W; ++w) row[e + w] = run.at[w];
    }
}

// A GPU on one thread of a CPU: blocks, the threads in them, and what they wait for.
//
// A CUDA thread runs until it waits for others or ends. One that waits keeps its stack, on a fibre of its own, and the
// scheduler goes on to the next thread; threads that never wait run one after the other on the same fibre. Those that can
// run do so in rounds: in order, in reverse, or shuffled anew each time. All of these are schedules that a GPU may choose,
// so a kernel whose results depend on the choice is wrong.
//
// What a GPU does not promise is made to fail: shared memory is full of NaN before each block, asynchronous copies land
// as late as they may (in reverse order as early as they may), and who can never run again is reported.
//
// What is declared here is the device. It is compiled once (machine.cpp, waits.cpp, scheduler.cpp) and linked to all kernels, which know
// these declarations alone; and on x86-64 no header of the system is needed: so compiling kernels takes no longer than it must.
#define STENCILC_EMULATED

#ifndef __x86_64__
#define STENCILC_UCONTEXT
#endif
#ifdef STENCILC_UCONTEXT
#include <ucontext.h>
#endif

struct uint3 {
    unsigned x, y, z;
};

#pragma GCC visibility push(hidden)
namespace emulated {

using Size = __SIZE_TYPE__;
using Bits = unsigned long long;

enum class State : unsigned char { ready, block, warp, mbarrier, cluster, grid, flag, ended };

enum class Operation : unsigned char {
    none, syncthreads, syncthreads_count, syncthreads_and, syncthreads_or, syncwarp, shfl, shfl_up, shfl_down, shfl_xor,
    any, all, ballot, mbarrier_wait, cluster_wait, grid_barrier, flag_raise, flag_wait,
    peers_meet
};

// As Rust hands it over.
struct Launch {
    unsigned grid[3], block[3], cluster[3];
    unsigned shared;  // bytes of dynamic shared memory
    int cooperative;  // whether all blocks are there at once
    int order;
    Bits seed;
    Bits first, end;  // the blocks to be run, all of those that are there at once among them
};

struct Block;
struct Fibre;

// A barrier in shared memory that counts arrivals and bytes.
struct Mbarrier {
    Mbarrier* next;
    const void* place;
    unsigned count, pending, phase;
    long long bytes;
};

// A copy that is under way: a thread's own, or one that an mbarrier waits for.
struct Copy {
    Copy* next;
    void* to;
    const void* from;
    unsigned bytes, valid;  // of the bytes only the first are read, and the rest become zero
    unsigned group;
    Mbarrier* barrier;
    Bits value[2];  // what a store sends
};

struct Thread {
    uint3 index;
    unsigned number;  // in its block
    Block* block;
    Fibre* fibre;  // null until it has started
    State state;
    bool arrived;  // at the cluster's barrier, in its present phase
    bool joined;  // whether it has arrived there and not waited
    Operation operation;  // that it waits in, and where
    int line;
    unsigned mask;
    int source;  // the lane that a shuffle reads
    Bits value;  // what it brings to an exchange, and then what it gets
    Mbarrier* barrier;
    unsigned parity;
    Copy *oldest, *newest;
    unsigned group;  // that its next copy belongs to
};

// An array in shared memory.
struct Shared {
    int id;
    const char* name;
    char* place;
    Size bytes;
};

constexpr unsigned ARRAYS = 256;
constexpr Size GAP = 128;  // bytes between arrays in shared memory, and their alignment
constexpr Size STATIC_SHARED = 48 << 10, SHARED = 227 << 10;
constexpr Size ARENA = SHARED + (ARRAYS + 2) * 2 * GAP;
constexpr int POISON = 0xff, GUARD = 0xa5;

struct Block {
    uint3 index;
    unsigned alive, waiting;
    unsigned lanes;  // that wait for others of their warp
    unsigned cluster;  // which of those that are there
    Thread* threads;
    char* arena;
    Size used, claimed;
    Shared arrays[ARRAYS];
    unsigned count;
};

struct Cluster {
    unsigned alive, arrived;
};

struct Fibre {
    Fibre *next, *next_idle;
    char* stack;
    void* top;
    void* fake;
#ifdef STENCILC_UCONTEXT
    ucontext_t context;
#endif
};

struct Machine {
    const Launch* launch;
    const char* name;
    void (*body)(void**);
    void** arguments;
    uint3 block_extents, grid_extents;
    unsigned threads_of_block, blocks_of_cluster;
    unsigned count;  // of blocks that are there at once
    unsigned alive, at_grid;
    Block* blocks;
    Thread* threads;
    Cluster* clusters;
    char* arenas;
    Thread** queue;
    unsigned queued, next;
    Fibre *fibres, *idle, *running;
    void* top;
    void* fake;
    const void* bottom;  // the scheduler's own stack, for sanitizers
    Size length;
#ifdef STENCILC_UCONTEXT
    ucontext_t context;
#endif
    Mbarrier* barriers;
    Copy *bulk, *spare;
    Bits random;
    bool failed;
    char* message;
    Size room;
};

// Of the thread of the CPU that runs a launch.
extern __thread Machine* machine;
extern __thread Thread* current;

// scheduler.cpp
int run(const char* name, void (*body)(void**), void** arguments, const Launch* launch, char* message, Size room);

// waits.cpp
int block_barrier(Operation operation, int value, int line);
Bits warp_meet(Operation operation, unsigned mask, Bits value, int source, int line);
int lane_or_own(int source, bool inside);
void cluster_arrive(int line);
void cluster_wait(int line);
unsigned cluster_rank();
char* cluster_shared(const void* place, unsigned rank, int line);
void grid_barrier(const unsigned* state, int line);
void flag_raise(unsigned* flag, int line);
void flag_wait(unsigned* flag, int line);
void peers_meet(unsigned* own, const long long* others, int count, bool waits, int line);
#ifdef STENCILC_NATIVE
// Where kernels are to be fast nobody looks for what waits too little.
inline void copy_async(void* to, const void* from, unsigned bytes, int valid, int)
{
    __builtin_memcpy(to, from, unsigned(valid));
    __builtin_memset(static_cast<char*>(to) + valid, 0, bytes - unsigned(valid));
}
#else
void copy_async(void* to, const void* from, unsigned bytes, int valid, int line);
#endif
void copy_async_commit();
void copy_async_wait(unsigned pending);
void mbarrier_init(void* place, unsigned count, int line);
void mbarrier_arrive(const void* place, unsigned bytes, int line);
void mbarrier_wait(const void* place, unsigned parity, int line);
void copy_bulk(void* to, const void* from, unsigned bytes, const void* place, int line);
void store_async(void* to, const void* value, unsigned rank, const void* place, int line);
char* shared_array(int id, const char* name, Size bytes);

template <class T> T shuffle(Operation operation, unsigned mask, T value, int source, int line)
{
    static_assert(sizeof(T) <= sizeof(Bits), "a shuffle moves at most 8 bytes");
    Bits bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = warp_meet(operation, mask, bits, source, line);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace emulated
#pragma GCC visibility pop

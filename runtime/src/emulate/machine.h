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
// On x86-64 no header of the system is needed, so that compiling takes no longer than it must.
#define STENCILC_EMULATED

#ifndef __x86_64__
#define STENCILC_UCONTEXT
#endif
#ifdef STENCILC_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define STENCILC_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STENCILC_ASAN
#endif
#endif

struct uint3 {
    unsigned x, y, z;
};

namespace emulated {

using Size = __SIZE_TYPE__;
using Bits = unsigned long long;

enum class State : unsigned char { ready, block, warp, mbarrier, cluster, grid, flag, ended };

enum class Operation : unsigned char {
    none, syncthreads, syncthreads_count, syncthreads_and, syncthreads_or, syncwarp, shfl, shfl_up, shfl_down, shfl_xor,
    any, all, ballot, mbarrier_wait, cluster_wait, grid_barrier, flag_raise, flag_wait
};

static const char* const NAMES[] = {
    "", "__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or", "__syncwarp", "__shfl_sync",
    "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__any_sync", "__all_sync", "__ballot_sync", "mbarrier_wait",
    "cluster_wait", "grid_barrier", "flag_raise", "flag_wait"
};

enum Order : int { FORWARD, REVERSE, SHUFFLED };

// As Rust hands it over.
struct Launch {
    unsigned grid[3], block[3], cluster[3];
    unsigned shared;  // bytes of dynamic shared memory
    int cooperative;  // whether all blocks are there at once
    int order;
    Bits seed;
    Bits first, end;  // the blocks to be run, all of those that are there at once among them
    int plain;        // whether no thread waits, and nobody looks whether it might
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

constexpr unsigned ARRAYS = 64;
constexpr Size GAP = 128;  // bytes between arrays in shared memory, and their alignment
constexpr Size STATIC_SHARED = 48 << 10, SHARED = 227 << 10;
constexpr Size ARENA = SHARED + (ARRAYS + 2) * 2 * GAP;
constexpr int POISON = 0xff, GUARD = 0xa5;

struct Block {
    uint3 index;
    unsigned alive, waiting;
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

static thread_local Machine* machine;
static thread_local Thread* current;

// Numbers for shuffling: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
inline Bits draw()
{
    Bits z = machine->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

template <class T> void arrange(T* list, unsigned length)
{
    if (machine->launch->order == REVERSE) {
        for (unsigned i = 0; i < length / 2; ++i) {
            const T last = list[length - 1 - i];
            list[length - 1 - i] = list[i];
            list[i] = last;
        }
    } else if (machine->launch->order == SHUFFLED) {
        for (unsigned i = length; i > 1; --i) {
            const unsigned other = unsigned(draw() % i);
            const T last = list[i - 1];
            list[i - 1] = list[other];
            list[other] = last;
        }
    }
}

// Whether a copy lands only when it is waited for.
inline bool lands_late()
{
    return machine->launch->order == FORWARD || (machine->launch->order == SHUFFLED && (draw() & 1) == 0);
}

#ifdef STENCILC_ASAN
extern "C" void __sanitizer_start_switch_fiber(void** fake, const void* bottom, Size length);
extern "C" void __sanitizer_finish_switch_fiber(void* fake, const void** bottom, Size* length);
extern "C" void __asan_poison_memory_region(const volatile void* memory, Size length);
extern "C" void __asan_unpoison_memory_region(const volatile void* memory, Size length);
constexpr Size STACK = 1 << 20;
inline void leave(void** fake, const void* bottom, Size length) { __sanitizer_start_switch_fiber(fake, bottom, length); }
inline void enter(void* fake, const void** bottom, Size* length) { __sanitizer_finish_switch_fiber(fake, bottom, length); }
inline void forbid(void* memory, Size length) { __asan_poison_memory_region(memory, length); }
inline void allow(void* memory, Size length) { __asan_unpoison_memory_region(memory, length); }
#else
constexpr Size STACK = 256 << 10;
inline void leave(void**, const void*, Size) {}
inline void enter(void*, const void**, Size*) {}
inline void forbid(void*, Size) {}
inline void allow(void*, Size) {}
#endif
constexpr Bits CANARY = 0x5afe5afe5afe5afeull;

#ifdef STENCILC_UCONTEXT
inline void resume_stack(Fibre* fibre) { swapcontext(&machine->context, &fibre->context); }
inline void pause_stack(Fibre* fibre) { swapcontext(&fibre->context, &machine->context); }
#else
// Saves what a call has to preserve, and takes up another stack where it left off.
extern "C" __attribute__((visibility("hidden"))) void stencilc_switch(void** save, void* load);
asm(R"(.text
.type stencilc_switch,@function
stencilc_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size stencilc_switch,.-stencilc_switch
)");
inline void resume_stack(Fibre* fibre) { stencilc_switch(&machine->top, fibre->top); }
inline void pause_stack(Fibre* fibre) { stencilc_switch(&fibre->top, machine->top); }
#endif

// Runs a fibre until it pauses.
inline void resume(Fibre* fibre)
{
    machine->running = fibre;
    leave(&machine->fake, fibre->stack, STACK);
    resume_stack(fibre);
    enter(machine->fake, nullptr, nullptr);
}

// Back to the scheduler.
inline void pause()
{
    Fibre* const own = machine->running;
    leave(&own->fake, machine->bottom, machine->length);
    pause_stack(own);
    enter(own->fake, &machine->bottom, &machine->length);
}

// Ends the run: `thread` did what cannot be, or waits for what cannot come.
__attribute__((format(printf, 2, 3))) inline void report(const Thread* thread, const char* format, ...)
{
    if (machine->failed) return;
    machine->failed = true;
    int length = __builtin_snprintf(machine->message, machine->room, "kernel %s: ", machine->name);
    if (thread) {
        const uint3 b = thread->block->index, t = thread->index;
        length = __builtin_snprintf(machine->message, machine->room, "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): ",
            machine->name, b.x, b.y, b.z, t.x, t.y, t.z);
    }
    if (length < 0 || Size(length) >= machine->room) return;
    __builtin_va_list rest;
    __builtin_va_start(rest, format);
    __builtin_vsnprintf(machine->message + length, machine->room - Size(length), format, rest);
    __builtin_va_end(rest);
}

// Memory full of zeros, or null where there is not enough.
template <class T> T* reserve(Size count)
{
    T* const memory = static_cast<T*>(__builtin_calloc(count ? count : 1, sizeof(T)));
    if (!memory) report(nullptr, "the memory of this machine does not suffice for the threads that are there at once");
    return memory;
}

// Leaves a thread that has failed where it is, for good.
[[noreturn]] inline void abandon()
{
    for (;;) pause();
}

// Waits until the scheduler has set the state back.
inline void wait(State state, Operation operation, int line)
{
    current->state = state;
    current->operation = operation;
    current->line = line;
    pause();
}

}  // namespace emulated

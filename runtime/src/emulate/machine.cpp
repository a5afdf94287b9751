// The machine's state, its fibres, and how it says what went wrong.
#if defined(__SANITIZE_ADDRESS__)
#define STENCILC_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STENCILC_ASAN
#endif
#endif

namespace emulated {

__thread Machine* machine;
__thread Thread* current;

static const char* const NAMES[] = {
    "", "__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or", "__syncwarp", "__shfl_sync",
    "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__any_sync", "__all_sync", "__ballot_sync", "mbarrier_wait",
    "cluster_wait", "grid_barrier", "flag_raise", "flag_wait", "peers_meet"
};

enum Order : int { FORWARD, REVERSE, SHUFFLED };

// Numbers for shuffling: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
Bits draw()
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
bool lands_late()
{
    return machine->launch->order == FORWARD || (machine->launch->order == SHUFFLED && (draw() & 1) == 0);
}

#ifdef STENCILC_ASAN
extern "C" void __sanitizer_start_switch_fiber(void** fake, const void* bottom, Size length);
extern "C" void __sanitizer_finish_switch_fiber(void* fake, const void** bottom, Size* length);
extern "C" void __asan_poison_memory_region(const volatile void* memory, Size length);
extern "C" void __asan_unpoison_memory_region(const volatile void* memory, Size length);
constexpr Size STACK = 1 << 20;
void leave(void** fake, const void* bottom, Size length) { __sanitizer_start_switch_fiber(fake, bottom, length); }
void enter(void* fake, const void** bottom, Size* length) { __sanitizer_finish_switch_fiber(fake, bottom, length); }
void forbid(void* memory, Size length) { __asan_poison_memory_region(memory, length); }
void allow(void* memory, Size length) { __asan_unpoison_memory_region(memory, length); }
#else
constexpr Size STACK = 256 << 10;
void leave(void**, const void*, Size) {}
void enter(void*, const void**, Size*) {}
void forbid(void*, Size) {}
void allow(void*, Size) {}
#endif
constexpr Bits CANARY = 0x5afe5afe5afe5afeull;

#ifdef STENCILC_UCONTEXT
void resume_stack(Fibre* fibre) { swapcontext(&machine->context, &fibre->context); }
void pause_stack(Fibre* fibre) { swapcontext(&fibre->context, &machine->context); }
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
void resume_stack(Fibre* fibre) { stencilc_switch(&machine->top, fibre->top); }
void pause_stack(Fibre* fibre) { stencilc_switch(&fibre->top, machine->top); }
#endif

// Runs a fibre until it pauses.
void resume(Fibre* fibre)
{
    machine->running = fibre;
    leave(&machine->fake, fibre->stack, STACK);
    resume_stack(fibre);
    enter(machine->fake, nullptr, nullptr);
}

// Back to the scheduler.
void pause()
{
    Fibre* const own = machine->running;
    leave(&own->fake, machine->bottom, machine->length);
    pause_stack(own);
    enter(own->fake, &machine->bottom, &machine->length);
}

// Ends the run: `thread` did what cannot be, or waits for what cannot come.
__attribute__((format(printf, 2, 3))) void report(const Thread* thread, const char* format, ...)
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
[[noreturn]] void abandon()
{
    for (;;) pause();
}

// Waits until the scheduler has set the state back.
void wait(State state, Operation operation, int line)
{
    current->state = state;
    current->operation = operation;
    current->line = line;
    pause();
}

}  // namespace emulated

// How kernels are called: with arguments of any types.
namespace emulated {

// A kernel's arguments, one after the other.
struct Arguments {
    void** next;
    template <class T> T take() { return *static_cast<T*>(*next++); }
};

// Calls a kernel for the thread at hand.
template <auto kernel, class... A> struct Call {
    Call(A... arguments)
    {
        kernel(current->index, current->block->index, machine->block_extents, machine->grid_extents, arguments...);
    }
};

// Calls a kernel for each thread of some blocks, of which none waits for another: one after the other, each found by the functions that it
// calls; or side by side, where there are no such functions and threads have nothing to do with each other at all. Then the kernel becomes a
// part of the loop: what threads have in common is computed before it, and several threads may be computed at once.
template <auto kernel, bool at_once, class... A> struct Each {
    Each(const Launch* launch, A... arguments)
    {
        const uint3 b = {launch->block[0], launch->block[1], launch->block[2]};
        const uint3 g = {launch->grid[0], launch->grid[1], launch->grid[2]};
        Machine m = {};
        Block block = {};
        Thread thread = {};
        if constexpr (!at_once) {
            m.block_extents = b;
            m.grid_extents = g;
            thread.block = &block;
            machine = &m;
            current = &thread;
        }
        for (Bits number = launch->first; number < launch->end; ++number) {
            block.index = {unsigned(number % g.x), unsigned(number / g.x % g.y), unsigned(number / g.x / g.y)};
            for (unsigned z = 0; z < b.z; ++z) {
                for (unsigned y = 0; y < b.y; ++y) {
                    if constexpr (at_once) {
                        row(y, z, block.index, b, g, arguments...);
                    } else {
                        for (unsigned x = 0; x < b.x; ++x) {
                            thread.index = {x, y, z};
                            kernel(thread.index, block.index, b, g, arguments...);
                        }
                    }
                }
            }
        }
        machine = nullptr;
        current = nullptr;
    }
    static void row(unsigned y, unsigned z, uint3 block, uint3 b, uint3 g, A... arguments)
    {
        STENCILC_SIDE_BY_SIDE
        for (unsigned x = 0; x < b.x; ++x) kernel({x, y, z}, block, b, g, arguments...);
    }
};

template <auto kernel> struct Entry;
template <class... A, void (*kernel)(uint3, uint3, uint3, uint3, A...)> struct Entry<kernel> {
    static constexpr unsigned count = sizeof...(A);
    static void body(void** arguments)
    {
        [[maybe_unused]] Arguments all = {arguments};
        // Braces are evaluated in order.
        Call<kernel, A...>{all.take<A>()...};
    }
    template <bool at_once> static void each(const Launch* launch, void** arguments)
    {
        [[maybe_unused]] Arguments all = {arguments};
        Each<kernel, at_once, A...>{launch, all.take<A>()...};
    }
    // Whether these are the sizes of the kernel's arguments.
    static bool takes(const Size* sizes, Size number)
    {
        const Size own[] = {sizeof(A)..., 0};
        if (number != count) return false;
        for (unsigned i = 0; i < count; ++i) {
            if (sizes[i] != own[i]) return false;
        }
        return true;
    }
};

// How a kernel is run: its threads on fibres, since they may wait for each other, or because somebody looks for what waits too little;
// one after the other; or side by side.
enum class Run { fibres, turns, side_by_side };

}  // namespace emulated

// What a kernel's arguments begin with, and what makes it a part of whatever calls it.
#define STENCILC_WHERE \
    [[maybe_unused]] const uint3 threadIdx, [[maybe_unused]] const uint3 blockIdx, [[maybe_unused]] const uint3 blockDim, \
        [[maybe_unused]] const uint3 gridDim
#define STENCILC_PART inline __attribute__((always_inline))

// What Rust looks up: launches a kernel. 0 done, 1 with a message, 2 the arguments are not the kernel's.
#define STENCILC_ENTRY(symbol, name, kernel, run_as) \
    extern "C" __attribute__((visibility("default"))) int symbol(const emulated::Launch* launch, void** arguments, \
        const emulated::Size* sizes, emulated::Size count, char* message, emulated::Size room) \
    { \
        using Own = emulated::Entry<&kernel>; \
        if (!Own::takes(sizes, count)) return 2; \
        if constexpr (emulated::Run::run_as == emulated::Run::fibres) { \
            return emulated::run(name, &Own::body, arguments, launch, message, room); \
        } else { \
            Own::each<emulated::Run::run_as == emulated::Run::side_by_side>(launch, arguments); \
            return 0; \
        } \
    }

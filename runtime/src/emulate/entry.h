// How kernels are called: with arguments of any types.
namespace emulated {

// A kernel's arguments, one after the other.
struct Arguments {
    void** next;
    template <class T> T take() { return *static_cast<T*>(*next++); }
};

// Calls a kernel.
template <class... A> struct Call {
    Call(void (*kernel)(A...), A... arguments) { kernel(arguments...); }
};

// Calls a kernel for each thread of some blocks, of which none waits.
template <class... A> struct Each {
    Each(const Launch* launch, void (*kernel)(A...), A... arguments)
    {
        const unsigned *const g = launch->grid, *const b = launch->block;
        Machine m = {};
        m.block_extents = {b[0], b[1], b[2]};
        m.grid_extents = {g[0], g[1], g[2]};
        Block block = {};
        Thread thread = {};
        thread.block = &block;
        machine = &m;
        current = &thread;
        for (Bits number = launch->first; number < launch->end; ++number) {
            block.index = {unsigned(number % g[0]), unsigned(number / g[0] % g[1]), unsigned(number / g[0] / g[1])};
            for (unsigned z = 0; z < b[2]; ++z) {
                for (unsigned y = 0; y < b[1]; ++y) {
                    for (unsigned x = 0; x < b[0]; ++x) {
                        thread.index = {x, y, z};
                        kernel(arguments...);
                    }
                }
            }
        }
        machine = nullptr;
        current = nullptr;
    }
};

template <auto kernel> struct Entry;
template <class... A, void (*kernel)(A...)> struct Entry<kernel> {
    static constexpr unsigned count = sizeof...(A);
    static void body(void** arguments)
    {
        [[maybe_unused]] Arguments all = {arguments};
        // Braces are evaluated in order.
        Call<A...>{kernel, all.take<A>()...};
    }
    static void each(const Launch* launch, void** arguments)
    {
        [[maybe_unused]] Arguments all = {arguments};
        Each<A...>{launch, kernel, all.take<A>()...};
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

}  // namespace emulated

// What Rust looks up: launches a kernel. 0 done, 1 with a message, 2 the arguments are not the kernel's.
#define STENCILC_ENTRY(symbol, name, kernel) \
    extern "C" __attribute__((visibility("default"))) int symbol(const emulated::Launch* launch, void** arguments, \
        const emulated::Size* sizes, emulated::Size count, char* message, emulated::Size room) \
    { \
        using Own = emulated::Entry<&kernel>; \
        if (!Own::takes(sizes, count)) return 2; \
        if (launch->plain) { \
            Own::each(launch, arguments); \
            return 0; \
        } \
        return emulated::run(name, &Own::body, arguments, launch, message, room); \
    }

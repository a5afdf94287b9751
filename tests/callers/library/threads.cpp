// Several threads compile, bind, run and free, and share one call, of which each frees what it has made.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <stencilc.h>

int main()
{
    const int n = 64;
    std::vector<double> a(n * n), b(n * n);
    for (int cell = 0; cell < n * n; ++cell) a[cell] = cell;
    const auto array = [](const char* name, std::vector<double>& numbers) {
        StencilcArray own = {};
        own.size = sizeof own;
        own.name = name;
        own.data = numbers.data();
        own.element = STENCILC_F64;
        own.device = STENCILC_HOST;
        own.axes = 3;
        own.shape[0] = 1;
        own.shape[1] = own.shape[2] = n;
        return own;
    };
    StencilcStencil* stencil = nullptr;
    StencilcCall* shared = nullptr;
    if (stencilc_compile("stencil twice { in a; out b; b = 2 * a }", "twice.stn", nullptr, &stencil) != STENCILC_STATUS_OK) return 1;
    const StencilcArray arrays[2] = {array("a", a), array("b", b)};
    if (stencilc_bind(stencil, arrays, 2, &shared) != STENCILC_STATUS_OK) return 2;
    std::atomic<int> wrong{0};
    const auto work = [&](int number) {
        std::vector<double> own(n * n);
        const StencilcArray mine[2] = {array("a", a), array("b", own)};
        for (int round = 0; round < 20; ++round) {
            StencilcCall* call = nullptr;
            if (stencilc_bind(stencil, mine, 2, &call) != STENCILC_STATUS_OK) ++wrong;
            if (stencilc_run(call) != STENCILC_STATUS_OK || own[n] != 2 * n) ++wrong;
            if (stencilc_run(shared) != STENCILC_STATUS_OK) ++wrong;
            if (stencilc_free_call(call) != STENCILC_STATUS_OK) ++wrong;
            // Messages are those of a thread.
            const std::string name = "t" + std::to_string(number);
            if (stencilc_set_real(stencil, name.c_str(), 1) != STENCILC_STATUS_CALL) ++wrong;
            if (std::strstr(stencilc_message(), ("`" + name + "`").c_str()) == nullptr) ++wrong;
        }
    };
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) threads.emplace_back(work, number);
    for (std::thread& thread : threads) thread.join();
    if (stencilc_free_call(shared) != STENCILC_STATUS_OK || stencilc_free(stencil) != STENCILC_STATUS_OK) ++wrong;
    if (wrong == 0 && b[n] == 2 * n) std::puts("all are right");
    return wrong;
}

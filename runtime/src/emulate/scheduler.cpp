// Runs the blocks of a launch.
namespace emulated {

// A thread's function has returned.
void end(Thread* thread)
{
    Machine& m = *machine;
    Block& block = *thread->block;
    thread->state = State::ended;
    --block.alive;
    --m.alive;
    // Copies that nobody waited for are lost.
    while (Copy* const copy = thread->oldest) {
        thread->oldest = copy->next;
        copy->next = m.spare;
        m.spare = copy;
    }
    Cluster& cluster = m.clusters[block.cluster];
    --cluster.alive;
    cluster.arrived -= thread->arrived;
    if (cluster.arrived > 0) check_cluster(block.cluster);
    if (block.lanes == 0) return;
    // Lanes that wait may have waited for this one alone.
    const unsigned warp = thread->number / WARP, first = warp * WARP;
    for (unsigned i = first; i < first + WARP && i < m.threads_of_block; ++i) {
        if (block.threads[i].state == State::warp) check_warp(&block, warp, &block.threads[i]);
    }
}

void check_stack(const Fibre* fibre)
{
    Bits canary;
    __builtin_memcpy(&canary, fibre->stack, sizeof canary);
    if (canary != CANARY) report(current, "its stack of %llu bytes does not suffice", Bits(STACK));
}

// In a fibre: runs threads that have not started, until one is next that has a fibre of its own.
void work()
{
    Machine& m = *machine;
    while (m.next < m.queued && !m.failed) {
        Thread* const thread = m.queue[m.next];
        if (thread->fibre) return;
        ++m.next;
        thread->fibre = m.running;
        current = thread;
        m.body(m.arguments);
        end(thread);
    }
}

// What a fibre does all its life.
void live()
{
    enter(nullptr, &machine->bottom, &machine->length);
    for (;;) {
        work();
        machine->running->next_idle = machine->idle;
        machine->idle = machine->running;
        pause();
    }
}

Fibre* idle_fibre()
{
    if (Fibre* const fibre = machine->idle) {
        machine->idle = fibre->next_idle;
        return fibre;
    }
    Fibre* const fibre = reserve<Fibre>(1);
    if (!fibre) return nullptr;
    fibre->next = machine->fibres;
    machine->fibres = fibre;
    fibre->stack = static_cast<char*>(__builtin_malloc(STACK));
    if (!fibre->stack) {
        report(nullptr, "the memory of this machine does not suffice for the stacks of threads that wait");
        return nullptr;
    }
    __builtin_memcpy(fibre->stack, &CANARY, sizeof CANARY);
#ifdef STENCILC_UCONTEXT
    getcontext(&fibre->context);
    fibre->context.uc_stack.ss_sp = fibre->stack;
    fibre->context.uc_stack.ss_size = STACK;
    fibre->context.uc_link = nullptr;
    makecontext(&fibre->context, live, 0);
#else
    void** top = reinterpret_cast<void**>((reinterpret_cast<Size>(fibre->stack) + STACK) & ~Size(15));
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&live);
    for (int i = 0; i < 6; ++i) *--top = nullptr;  // the registers that a switch restores
    fibre->top = top;
#endif
    return fibre;
}

// Runs each thread once that can run; whether there was one.
bool run_round()
{
    Machine& m = *machine;
    m.queued = 0;
    for (Size i = 0; i < Size(m.count) * m.threads_of_block; ++i) {
        if (m.threads[i].state == State::ready) m.queue[m.queued++] = &m.threads[i];
    }
    arrange(m.queue, m.queued);
    for (m.next = 0; m.next < m.queued && !m.failed;) {
        Thread* const thread = m.queue[m.next];
        Fibre* fibre = thread->fibre;
        if (fibre) {
            ++m.next;
            current = thread;
        } else if (!(fibre = idle_fibre())) {
            break;
        }
        resume(fibre);
        check_stack(fibre);
    }
    return m.queued > 0;
}

// Says who can never go on, and why.
void report_deadlock()
{
    const Machine& m = *machine;
    const Size count = Size(m.count) * m.threads_of_block;
    const Thread* waiting = nullptr;
    for (Size i = 0; i < count && !waiting; ++i) {
        if (m.threads[i].state == State::warp) waiting = &m.threads[i];
    }
    // Who waits for fewer others tells more.
    for (Size i = 0; i < count && !waiting; ++i) {
        if (m.threads[i].state != State::ended) waiting = &m.threads[i];
    }
    if (!waiting) return;
    const char* const name = NAMES[int(waiting->operation)];
    if (waiting->state == State::mbarrier) {
        return report(waiting, "deadlock: waits at %s (line %d) for ever: arrivals missing %u, bytes missing %lld", name,
            waiting->line, waiting->barrier->pending, waiting->barrier->bytes);
    }
    // The first thread that is waited for and does not come.
    const Thread* missing = nullptr;
    for (Size i = 0; i < count && !missing; ++i) {
        const Thread& other = m.threads[i];
        bool comes = true;
        switch (waiting->state) {
        case State::block: comes = other.block != waiting->block || other.state == State::block; break;
        case State::warp:
            comes = other.block != waiting->block || other.number / WARP != waiting->number / WARP ||
                !(waiting->mask >> other.number % WARP & 1) || other.state == State::ended ||
                (other.state == State::warp && other.mask == waiting->mask && other.operation == waiting->operation);
            break;
        case State::cluster: comes = other.block->cluster != waiting->block->cluster || other.state == State::cluster; break;
        case State::grid: comes = other.state == State::grid; break;
        case State::ready: case State::mbarrier: case State::flag: case State::ended: break;
        }
        if (!comes) missing = &other;
    }
    if (!missing) return report(waiting, "deadlock: waits at %s (line %d) for ever", name, waiting->line);
    const char* const kind = waiting->state == State::block ? "divergent barrier" : "deadlock";
    const uint3 b = missing->block->index, t = missing->index;
    char mask[32] = "";
    if (waiting->state == State::warp) __builtin_snprintf(mask, sizeof mask, " with mask 0x%08x", waiting->mask);
    if (missing->state == State::ended) {
        return report(waiting, "%s: waits at %s (line %d)%s for thread (%u, %u, %u) of block (%u, %u, %u), which has ended",
            kind, name, waiting->line, mask, t.x, t.y, t.z, b.x, b.y, b.z);
    }
    char other[32] = "";
    if (missing->state == State::warp) __builtin_snprintf(other, sizeof other, " with mask 0x%08x", missing->mask);
    report(waiting, "%s: waits at %s (line %d)%s for thread (%u, %u, %u) of block (%u, %u, %u), which waits at %s (line %d)%s",
        kind, name, waiting->line, mask, t.x, t.y, t.z, b.x, b.y, b.z, NAMES[int(missing->operation)], missing->line, other);
}

// Makes the block with number `number` in the order of clusters ready to run at `place` among those that are there.
void prepare(unsigned place, Bits number)
{
    Machine& m = *machine;
    const Launch& launch = *m.launch;
    Block& block = m.blocks[place];
    const unsigned* const c = launch.cluster;
    const unsigned rank = unsigned(number % m.blocks_of_cluster);
    const Bits cluster = number / m.blocks_of_cluster;
    const Bits wide = launch.grid[0] / c[0], high = launch.grid[1] / c[1];
    block.index.x = unsigned(cluster % wide) * c[0] + rank % c[0];
    block.index.y = unsigned(cluster / wide % high) * c[1] + rank / c[0] % c[1];
    block.index.z = unsigned(cluster / wide / high) * c[2] + rank / c[0] / c[1];
    block.alive = m.threads_of_block;
    block.waiting = 0;
    block.lanes = 0;
    block.cluster = place / m.blocks_of_cluster;
    block.threads = m.threads + Size(place) * m.threads_of_block;
    block.arena = m.arenas + Size(place) * ARENA;
    block.count = 0;
    block.used = 0;
    block.claimed = 0;
    if (launch.shared > 0) {
        const Size end = (launch.shared + GAP - 1) / GAP * GAP;
        __builtin_memset(block.arena, POISON, launch.shared);
        __builtin_memset(block.arena + launch.shared, GUARD, end - launch.shared + GAP);
        forbid(block.arena + launch.shared, end - launch.shared + GAP);
        block.arrays[block.count++] = Shared{-1, "dynamic shared memory", block.arena, launch.shared};
        block.used = end + GAP;
    }
    uint3 index = {0, 0, 0};
    for (unsigned i = 0; i < m.threads_of_block; ++i) {
        block.threads[i] = Thread();
        block.threads[i].index = index;
        block.threads[i].number = i;
        block.threads[i].block = &block;
        if (++index.x < launch.block[0]) continue;
        index.x = 0;
        if (++index.y < launch.block[1]) continue;
        index.y = 0;
        ++index.z;
    }
    if (rank == 0) m.clusters[block.cluster] = Cluster{m.threads_of_block * m.blocks_of_cluster, 0};
}

// Runs the blocks that are there at once, from `first` on.
void run_group(Bits first)
{
    Machine& m = *machine;
    for (unsigned place = 0; place < m.count; ++place) prepare(place, first + place);
    m.alive = m.count * m.threads_of_block;
    m.at_grid = 0;
    while (m.alive > 0 && !m.failed) {
        if (!run_round() && !m.failed && !land_awaited()) report_deadlock();
    }
    for (unsigned place = 0; place < m.count; ++place) check_shared(m.blocks[place]);
    while (Copy* const copy = m.bulk) {
        m.bulk = copy->next;
        copy->next = m.spare;
        m.spare = copy;
    }
    while (Mbarrier* const barrier = m.barriers) {
        m.barriers = barrier->next;
        __builtin_free(barrier);
    }
}

template <class T> void discard(T* list)
{
    while (list) {
        T* const next = list->next;
        __builtin_free(list);
        list = next;
    }
}

// Runs a launch. Returns 0, or writes what went wrong into `message`.
int run(const char* name, void (*body)(void**), void** arguments, const Launch* launch, char* message, Size room)
{
    Machine m = {};
    machine = &m;
    m.launch = launch;
    m.name = name;
    m.body = body;
    m.arguments = arguments;
    m.message = message;
    m.room = room;
    m.random = launch->seed;
    m.block_extents = {launch->block[0], launch->block[1], launch->block[2]};
    m.grid_extents = {launch->grid[0], launch->grid[1], launch->grid[2]};
    m.threads_of_block = launch->block[0] * launch->block[1] * launch->block[2];
    m.blocks_of_cluster = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    const Bits blocks = launch->end - launch->first;
    m.count = launch->cooperative ? unsigned(blocks) : m.blocks_of_cluster;
    const unsigned groups = unsigned(blocks / m.count);
    const Size threads = Size(m.count) * m.threads_of_block;
    m.blocks = reserve<Block>(m.count);
    m.threads = reserve<Thread>(threads);
    m.queue = reserve<Thread*>(threads);
    m.clusters = reserve<Cluster>(m.count / m.blocks_of_cluster);
    unsigned* const order = reserve<unsigned>(groups);
    // At a multiple of what any copy needs; what is never touched takes no memory.
    char* const arenas = static_cast<char*>(__builtin_malloc(m.count * ARENA + GAP));
    if (!arenas) report(nullptr, "the memory of this machine does not suffice for shared memory");
    m.arenas = arenas + (GAP - reinterpret_cast<Size>(arenas) % GAP);
    if (!m.failed) {
        for (unsigned group = 0; group < groups; ++group) order[group] = group;
        arrange(order, groups);
    }
    for (unsigned i = 0; i < groups && !m.failed; ++i) run_group(launch->first + Bits(order[i]) * m.count);
    for (Fibre* fibre = m.fibres; fibre; fibre = fibre->next) __builtin_free(fibre->stack);
    discard(m.fibres);
    for (Size i = 0; i < threads && m.threads; ++i) discard(m.threads[i].oldest);
    discard(m.spare);
    __builtin_free(arenas);
    __builtin_free(order);
    __builtin_free(m.clusters);
    __builtin_free(m.queue);
    __builtin_free(m.threads);
    __builtin_free(m.blocks);
    machine = nullptr;
    current = nullptr;
    return m.failed;
}

}  // namespace emulated

// What threads wait for: barriers of a block, of a cluster and of the grid, the other lanes of a warp, copies.
namespace emulated {

constexpr unsigned WARP = 32;

// Lets every thread of a block go on that waits at its barrier, if all do, at the same place.
void check_block(Block* block)
{
    const unsigned count = machine->threads_of_block;
    if (block->waiting < count) return;
    const Thread& first = block->threads[0];
    Bits sum = 0;
    for (unsigned i = 0; i < count; ++i) {
        Thread& thread = block->threads[i];
        if (thread.operation != first.operation || thread.line != first.line) {
            return report(&thread, "divergent barrier: waits at %s (line %d), but thread (%u, %u, %u) at %s (line %d)",
                NAMES[int(thread.operation)], thread.line, first.index.x, first.index.y, first.index.z,
                NAMES[int(first.operation)], first.line);
        }
        sum += thread.value;
    }
    if (first.operation == Operation::syncthreads_and) sum = sum == count;
    if (first.operation == Operation::syncthreads_or) sum = sum != 0;
    for (unsigned i = 0; i < count; ++i) {
        block->threads[i].value = sum;
        block->threads[i].state = State::ready;
    }
    block->waiting = 0;
}

int block_barrier(Operation operation, int value, int line)
{
    current->value = value != 0;
    ++current->block->waiting;
    current->state = State::block;
    current->operation = operation;
    current->line = line;
    check_block(current->block);
    pause();
    return int(current->value);
}

// Lets the lanes of a mask go on, if all that there are have come to the same operation with the same mask.
void check_warp(Block* block, unsigned warp, Thread* member)
{
    Thread* const lanes = block->threads + warp * WARP;
    const unsigned rest = machine->threads_of_block - warp * WARP, count = rest < WARP ? rest : WARP;
    const unsigned mask = member->mask;
    const auto has = [&](unsigned lane) { return (mask >> lane & 1) && lane < count && lanes[lane].state != State::ended; };
    // In most orders the next lane is the next to come: it is looked at first, so that meeting takes no time that grows as the square of the lanes.
    const unsigned next = (member->number + 1) % WARP;
    if (has(next) && lanes[next].state != State::warp) return;
    Bits ballot = 0, values[WARP];
    for (unsigned lane = 0; lane < count; ++lane) {
        if (!has(lane)) continue;
        const Thread& own = lanes[lane];
        if (own.state != State::warp || own.operation != member->operation || own.mask != mask) return;
        values[lane] = own.value;
        ballot |= Bits(own.value != 0) << lane;
    }
    const Operation operation = member->operation;
    for (unsigned lane = 0; lane < count; ++lane) {
        if (!has(lane)) continue;
        Thread& own = lanes[lane];
        own.state = State::ready;
        --block->lanes;
        switch (operation) {
        case Operation::shfl: case Operation::shfl_up: case Operation::shfl_down: case Operation::shfl_xor: {
            const unsigned source = unsigned(own.source);
            if (!(mask >> source & 1)) {
                report(&own, "%s (line %d) reads lane %u, which is not in its mask 0x%08x",
                    NAMES[int(operation)], own.line, source, mask);
                return;
            }
            // What a lane that is not there gives is undefined.
            own.value = has(source) ? values[source] : ~Bits(0);
            break;
        }
        case Operation::any: own.value = ballot != 0; break;
        case Operation::all: {
            bool all = true;
            for (unsigned other = 0; other < count; ++other) all = all && (!has(other) || (ballot >> other & 1));
            own.value = all;
            break;
        }
        default: own.value = ballot;
        }
    }
}

// Meets the lanes of `mask`; a shuffle reads what `source` brings.
Bits warp_meet(Operation operation, unsigned mask, Bits value, int source, int line)
{
    const unsigned lane = current->number % WARP;
    if (!(mask >> lane & 1)) {
        report(current, "%s (line %d): its own lane %u is not in its mask 0x%08x", NAMES[int(operation)], line, lane, mask);
        abandon();
    }
    current->mask = mask;
    current->value = value;
    current->source = source;
    current->state = State::warp;
    ++current->block->lanes;
    current->operation = operation;
    current->line = line;
    check_warp(current->block, current->number / WARP, current);
    pause();
    return current->value;
}

// Whether `source` may be read in a part of the warp that is `width` wide; else a lane reads its own value.
int lane_or_own(int source, bool inside)
{
    return inside ? source : int(current->number % WARP);
}

// Lets the threads of a cluster go on that wait for its barrier, if all have arrived.
void check_cluster(unsigned number)
{
    Cluster& cluster = machine->clusters[number];
    if (cluster.alive == 0 || cluster.arrived < cluster.alive) return;
    cluster.arrived = 0;
    Thread* const first = machine->threads + Size(number) * machine->blocks_of_cluster * machine->threads_of_block;
    for (unsigned i = 0; i < machine->blocks_of_cluster * machine->threads_of_block; ++i) {
        first[i].arrived = false;
        if (first[i].state == State::cluster) first[i].state = State::ready;
    }
}

void cluster_arrive(int line)
{
    if (current->joined) {
        report(current, "arrives at the cluster's barrier (line %d) again without having waited", line);
        abandon();
    }
    current->joined = current->arrived = true;
    ++machine->clusters[current->block->cluster].arrived;
    check_cluster(current->block->cluster);
}

void cluster_wait(int line)
{
    if (!current->joined) {
        report(current, "waits for the cluster's barrier (line %d) without having arrived", line);
        abandon();
    }
    current->joined = false;
    if (current->arrived) wait(State::cluster, Operation::cluster_wait, line);
}

unsigned cluster_rank()
{
    return unsigned(current->block - machine->blocks) % machine->blocks_of_cluster;
}

// Where another block of the cluster has what is at `place` in this block's shared memory.
char* cluster_shared(const void* place, unsigned rank, int line)
{
    Block* const own = current->block;
    const Size offset = Size(static_cast<const char*>(place) - own->arena);
    if (rank >= machine->blocks_of_cluster || offset >= ARENA) {
        report(current, "cluster_shared (line %d): block %u of a cluster of %u, byte %llu of shared memory", line, rank,
            machine->blocks_of_cluster, Bits(offset));
        abandon();
    }
    Block* const other = machine->blocks + own->cluster * machine->blocks_of_cluster + rank;
    if (other->alive == 0) {
        report(current, "cluster_shared (line %d): block %u of the cluster has ended", line, rank);
        abandon();
    }
    return other->arena + offset;
}

void grid_barrier(const unsigned* state, int line)
{
    if (!machine->launch->cooperative) {
        report(current, "grid_barrier (line %d) in a launch that is not cooperative: the blocks may not all be there", line);
        abandon();
    }
    if (!state) {
        report(current, "grid_barrier (line %d) without memory to count in", line);
        abandon();
    }
    current->state = State::grid;
    current->operation = Operation::grid_barrier;
    current->line = line;
    if (++machine->at_grid == machine->count * machine->threads_of_block) {
        machine->at_grid = 0;
        for (Size i = 0; i < Size(machine->count) * machine->threads_of_block; ++i) machine->threads[i].state = State::ready;
    }
    pause();
}

void check_place(const void* place, unsigned alignment, const char* what, int line)
{
    if (!place || reinterpret_cast<Size>(place) % alignment != 0) {
        report(current, "%s (line %d): its address %p is not a multiple of %u", what, line, place, alignment);
        abandon();
    }
}

// Flags are waited for by blocks that are there with those that raise them.
void check_flag(const unsigned* flag, const char* what, int line)
{
    if (!machine->launch->cooperative) {
        report(current, "%s (line %d) in a launch that is not cooperative: the blocks may not all be there", what, line);
        abandon();
    }
    check_place(flag, sizeof *flag, what, line);
}

void flag_raise(unsigned* flag, int line)
{
    check_flag(flag, "flag_raise", line);
    block_barrier(Operation::flag_raise, 0, line);
    if (current->number != 0) return;
    *flag = 1;
    for (Size i = 0; i < Size(machine->count) * machine->threads_of_block; ++i) {
        if (machine->threads[i].state == State::flag) machine->threads[i].state = State::ready;
    }
}

void flag_wait(unsigned* flag, int line)
{
    check_flag(flag, "flag_wait", line);
    if (current->number == 0) {
        while (*flag == 0) {
            wait(State::flag, Operation::flag_wait, line);
        }
        *flag = 0;
    }
    block_barrier(Operation::flag_wait, 0, line);
}

// Nobody else computes meanwhile who could be waited for.
void peers_meet(unsigned* own, const long long* others, int count, bool waits, int line)
{
    check_place(own, sizeof *own, "peers_meet", line);
    for (int n = 0; n < count; ++n) {
        if (!others[n]) continue;
        report(current, "peers_meet (line %d) with a machine that does nothing meanwhile", line);
        abandon();
    }
    block_barrier(Operation::peers_meet, waits, line);
    if (current->number != 0) return;
    const unsigned blocks = machine->launch->grid[0] * machine->launch->grid[1] * machine->launch->grid[2];
    if (__atomic_add_fetch(own + 1, 1u, __ATOMIC_SEQ_CST) != blocks) return;
    own[1] = 0;
    own[0] += 1;
}

Copy* new_copy(void* to, const void* from, unsigned bytes, unsigned valid)
{
    Copy* copy = machine->spare;
    if (copy) machine->spare = copy->next;
    else if (!(copy = reserve<Copy>(1))) abandon();
    *copy = Copy{nullptr, to, from, bytes, valid, 0, nullptr, {}};
    return copy;
}

void land(Copy* copy)
{
    __builtin_memcpy(copy->to, copy->from, copy->valid);
    __builtin_memset(static_cast<char*>(copy->to) + copy->valid, 0, copy->bytes - copy->valid);
    copy->next = machine->spare;
    machine->spare = copy;
}

#ifndef STENCILC_NATIVE
void copy_async(void* to, const void* from, unsigned bytes, int valid, int line)
{
    check_place(to, bytes, "copy_async", line);
    check_place(from, bytes, "copy_async", line);
    if (valid < 0 || unsigned(valid) > bytes) {
        report(current, "copy_async (line %d) of %d bytes, and %u is the most", line, valid, bytes);
        abandon();
    }
    Copy* const copy = new_copy(to, from, bytes, unsigned(valid));
    if (!lands_late()) return land(copy);
    copy->group = current->group;
    (current->oldest ? current->newest->next : current->oldest) = copy;
    current->newest = copy;
}
#endif

void copy_async_commit()
{
    ++current->group;
}

// All but the last `pending` groups land.
void copy_async_wait(unsigned pending)
{
    while (Copy* const copy = current->oldest) {
        if (copy->group + pending >= current->group) return;
        current->oldest = copy->next;
        land(copy);
    }
}

Mbarrier* find_mbarrier(const void* place)
{
    Mbarrier* barrier = machine->barriers;
    while (barrier && barrier->place != place) barrier = barrier->next;
    return barrier;
}

Mbarrier* mbarrier(const void* place, const char* what, int line)
{
    Mbarrier* const barrier = find_mbarrier(place);
    if (!barrier) {
        report(current, "%s (line %d) of an mbarrier that was not initialised", what, line);
        abandon();
    }
    return barrier;
}

void mbarrier_init(void* place, unsigned count, int line)
{
    check_place(place, 8, "mbarrier_init", line);
    Mbarrier* barrier = find_mbarrier(place);
    if (!barrier) {
        barrier = reserve<Mbarrier>(1);
        if (!barrier) abandon();
        barrier->next = machine->barriers;
        machine->barriers = barrier;
    }
    *barrier = Mbarrier{barrier->next, place, count, count, 0, 0};
}

bool is_over(const Mbarrier* barrier, unsigned parity)
{
    return (barrier->phase & 1) != (parity & 1);
}

void check_mbarrier(Mbarrier* barrier)
{
    if (barrier->pending != 0 || barrier->bytes != 0) return;
    ++barrier->phase;
    barrier->pending = barrier->count;
    for (Size i = 0; i < Size(machine->count) * machine->threads_of_block; ++i) {
        Thread& thread = machine->threads[i];
        if (thread.state == State::mbarrier && thread.barrier == barrier && is_over(barrier, thread.parity))
            thread.state = State::ready;
    }
}

void mbarrier_arrive(const void* place, unsigned bytes, int line)
{
    Mbarrier* const barrier = mbarrier(place, "arrival", line);
    if (barrier->pending == 0) {
        report(current, "more than %u threads arrive at an mbarrier (line %d)", barrier->count, line);
        abandon();
    }
    barrier->bytes += bytes;
    --barrier->pending;
    check_mbarrier(barrier);
}

void mbarrier_wait(const void* place, unsigned parity, int line)
{
    Mbarrier* const barrier = mbarrier(place, "mbarrier_wait", line);
    if (is_over(barrier, parity)) return;
    current->barrier = barrier;
    current->parity = parity;
    wait(State::mbarrier, Operation::mbarrier_wait, line);
}

void land_bulk(Copy* copy)
{
    Mbarrier* const barrier = copy->barrier;
    barrier->bytes -= copy->bytes;
    land(copy);
    check_mbarrier(barrier);
}

void copy_bulk(void* to, const void* from, unsigned bytes, const void* place, int line)
{
    check_place(to, 16, "copy_bulk", line);
    check_place(from, 16, "copy_bulk", line);
    if (bytes % 16 != 0) {
        report(current, "copy_bulk (line %d) of %u bytes, which is no multiple of 16", line, bytes);
        abandon();
    }
    Copy* const copy = new_copy(to, from, bytes, bytes);
    copy->barrier = mbarrier(place, "copy_bulk", line);
    if (!lands_late()) return land_bulk(copy);
    copy->next = machine->bulk;
    machine->bulk = copy;
}

void store_async(void* to, const void* value, unsigned rank, const void* place, int line)
{
    check_place(to, 16, "store_async", line);
    Copy* const copy = new_copy(cluster_shared(to, rank, line), nullptr, 16, 16);
    __builtin_memcpy(copy->value, value, 16);
    copy->from = copy->value;
    copy->barrier = mbarrier(cluster_shared(place, rank, line), "store_async", line);
    if (!lands_late()) return land_bulk(copy);
    copy->next = machine->bulk;
    machine->bulk = copy;
}

// Lets the copies land that somebody waits for; whether there were any.
bool land_awaited()
{
    bool any = false;
    for (Copy** link = &machine->bulk; *link;) {
        Copy* const copy = *link;
        bool awaited = false;
        for (Size i = 0; i < Size(machine->count) * machine->threads_of_block && !awaited; ++i)
            awaited = machine->threads[i].state == State::mbarrier && machine->threads[i].barrier == copy->barrier;
        if (!awaited) {
            link = &copy->next;
            continue;
        }
        *link = copy->next;
        land_bulk(copy);
        any = true;
    }
    return any;
}

// The array that the declaration `id` makes in the block's shared memory: the first thread that comes to it makes room.
char* shared_array(int id, const char* name, Size bytes)
{
    Block& block = *current->block;
    for (unsigned i = 0; i < block.count; ++i) {
        if (block.arrays[i].id == id) return block.arrays[i].place;
    }
    block.claimed += bytes;
    if (block.claimed > STATIC_SHARED || block.count == ARRAYS) {
        report(current, "shared memory: `%s` makes it %llu bytes and %u arrays a block, and %llu and %u are the most", name,
            Bits(block.claimed), block.count + 1, Bits(STATIC_SHARED), ARRAYS);
        abandon();
    }
    char* const place = block.arena + block.used;
    const Size end = (bytes + GAP - 1) / GAP * GAP;
    __builtin_memset(place, POISON, bytes);
    __builtin_memset(place + bytes, GUARD, end - bytes + GAP);
    forbid(place + bytes, end - bytes + GAP);
    block.used += end + GAP;
    block.arrays[block.count++] = Shared{id, name, place, bytes};
    return place;
}

// Whether nothing was written beside the arrays of a block.
void check_shared(Block& block)
{
    for (unsigned i = 0; i < block.count; ++i) {
        const Shared& array = block.arrays[i];
        const Size end = (array.bytes + GAP - 1) / GAP * GAP + GAP;
        allow(array.place + array.bytes, end - array.bytes);
        for (Size at = array.bytes; at < end; ++at) {
            if (static_cast<unsigned char>(array.place[at]) != GUARD) {
                report(&block.threads[0], "the block wrote beyond `%s` in shared memory, at byte %llu of %llu", array.name,
                    Bits(at), Bits(array.bytes));
                break;
            }
        }
    }
}

}  // namespace emulated

// Runs generated kernels on the host and watches every access of theirs to memory.
//
// The threads of a block are fibers: each runs up to its next barrier, and when all stand at the same one they go on.
// Blocks run one after the other. The kernels are compiled with the instrumentation of the thread sanitizer, whose
// functions are defined here: each access is held against the last ones to the same bytes. Two threads of a block that
// meet at a byte without a barrier in between, one of them writing, are reported whatever the values are and whichever
// came first; so are two blocks of one launch, and addresses outside of an array or not aligned.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef uint32_t u32;
typedef uint64_t u64;

struct RtxIndex { unsigned x, y, z; };
// As in the prelude; here only its size matters.
struct Launch { u64 words[12]; };

// Device memory, and for each byte its last write and read: 23 bits for the stretch between two barriers of one block
// (numbered through all launches), 9 bits for the thread.
struct Device {
    char* base;
    u64 bytes;
    u32 *writes, *reads;
    u32 stretch;
};

// What went wrong; as `Report` in Rust.
struct Report {
    u32 kind;
    u32 block, thread, other;
    u32 line;      // of the barrier that the thread passed last
    u32 other_line;
    u32 write, size;
    u32 space;     // 0 device memory, 1 dynamic shared memory, 2 other shared memory, 3 elsewhere
    u64 offset;
};
enum Kind { FINE, RACE, BLOCKS, OUTSIDE, UNALIGNED, BARRIERS, SHUFFLE, STACK };
enum { MANY = 511, SEVERAL_BLOCKS = 510, GUARD = 0xffffffffu };

static const int MOST_THREADS = 256;
static const size_t STACK_BYTES = 256 << 10;
static const int DYNAMIC_BYTES = 128 << 10;

extern "C" {
alignas(256) __attribute__((visibility("hidden"))) char rtx_dynamic[DYNAMIC_BYTES];
// Bounds of the section; absent where no kernel has such arrays.
extern char __start_rtx_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_rtx_shared[] __attribute__((weak, visibility("hidden")));
}
static u32 dynamic_cells[2][DYNAMIC_BYTES];
static const size_t STATIC_BYTES = 256 << 10;
static u32 static_cells[2][STATIC_BYTES];

enum State { NEW, READY, AT_BARRIER, AT_SHUFFLE, DONE };
struct Fiber {
    jmp_buf at;
    State state;
    int line, passed; // barrier that it waits at; barrier that it passed last
    int shuffles;
    int size;
    char slot[2][16];
};
static Fiber fibers[MOST_THREADS];
static char* stacks;
static jmp_buf scheduler;
static ucontext_t start_context;
static bool made[MOST_THREADS];

static Device* device;
static Report report;
static void* kernel;
static int is_copy;
static const u64* arguments;
static char* const* table;
static unsigned block, grid, threads;
static u32 me;
static u32 launch_start, block_start;
static size_t dynamic_bytes;

static void leave() {
    if (!_setjmp(fibers[me].at)) _longjmp(scheduler, 1);
}

[[noreturn]] static void fail(u32 kind) {
    report.kind = kind;
    report.block = block;
    report.thread = me;
    report.line = fibers[me].passed;
    _longjmp(scheduler, 1);
}

static void body() {
    if (is_copy)
        ((void (*)(char* const*, u64, u64, u64))kernel)(table, arguments[0], arguments[1], arguments[2]);
    else
        ((void (*)(char* const*, Launch))kernel)(table, *(const Launch*)arguments);
}

static void fiber_main() {
    for (;;) {
        body();
        fibers[me].state = DONE;
        leave();
    }
}

extern "C" {

__attribute__((visibility("hidden"))) RtxIndex rtx_thread_index() { return {me, 0, 0}; }
__attribute__((visibility("hidden"))) RtxIndex rtx_block_index() { return {block, 0, 0}; }
__attribute__((visibility("hidden"))) RtxIndex rtx_block_extent() { return {threads, 1, 1}; }
__attribute__((visibility("hidden"))) RtxIndex rtx_grid_extent() { return {grid, 1, 1}; }

__attribute__((visibility("hidden"))) void rtx_barrier(int line) {
    fibers[me].state = AT_BARRIER;
    fibers[me].line = line;
    leave();
}

// Values lie in two slots by turns: nobody is two shuffles ahead of its warp.
__attribute__((visibility("hidden"))) void rtx_shuffle(int line, unsigned mask, const void* mine, void* other, int size, int distance) {
    if (mask != 0xffffffffu || size > 16 || threads % 32 || distance < 0 || distance > 31) fail(SHUFFLE);
    Fiber& f = fibers[me];
    const int slot = f.shuffles++ % 2;
    memcpy(f.slot[slot], mine, size);
    f.state = AT_SHUFFLE;
    f.line = line;
    f.size = size;
    leave();
    memcpy(other, fibers[me ^ distance].slot[slot], size);
}

} // extern "C"

[[noreturn]] static void fail_at(u32 kind, u32 space, u64 offset, size_t n, bool write, u32 other) {
    report.space = space;
    report.offset = offset;
    report.size = n;
    report.write = write;
    report.other = other;
    fail(kind);
}

template <bool WRITE> static inline void touch(const void* address, size_t n, size_t align) {
    const char* p = (const char*)address;
    if ((size_t)(p - stacks) < MOST_THREADS * STACK_BYTES) return;
    u32 *writes, *reads, floor, space = 0;
    u64 offset = p - device->base;
    if (offset < device->bytes && n <= device->bytes - offset) {
        writes = device->writes + offset;
        reads = device->reads + offset;
        floor = launch_start;
    } else if ((offset = p - rtx_dynamic) < DYNAMIC_BYTES) {
        space = 1;
        if (offset + n > dynamic_bytes) fail_at(OUTSIDE, space, offset, n, WRITE, 0);
        writes = dynamic_cells[0] + offset;
        reads = dynamic_cells[1] + offset;
        floor = block_start;
    } else if (__start_rtx_shared && (offset = p - __start_rtx_shared) < (size_t)(__stop_rtx_shared - __start_rtx_shared)) {
        space = 2;
        writes = static_cells[0] + offset;
        reads = static_cells[1] + offset;
        floor = block_start;
    } else {
        fail_at(OUTSIDE, 3, (u64)p, n, WRITE, 0);
    }
    if ((size_t)p & (align - 1)) fail_at(UNALIGNED, space, offset, n, WRITE, 0);
    const u32 now = device->stretch, mine = now << 9 | me;
    for (size_t i = 0; i < n; ++i) {
        const u32 w = writes[i];
        if (w != mine) {
            if (w == GUARD) fail_at(OUTSIDE, space, offset + i, n, WRITE, 0);
            const u32 s = w >> 9;
            if (s >= floor) {
                if (s == now) fail_at(RACE, space, offset + i, n, WRITE, w & 511);
                if (s < block_start) fail_at(BLOCKS, space, offset + i, n, WRITE, w & 511);
            }
        }
        const u32 r = reads[i];
        if (WRITE) {
            if (r != mine) {
                const u32 s = r >> 9;
                if (s >= floor) {
                    if ((r & 511) == SEVERAL_BLOCKS || s < block_start) fail_at(BLOCKS, space, offset + i, n, WRITE, r & 511);
                    if (s == now) fail_at(RACE, space, offset + i, n, WRITE, r & 511);
                }
            }
            writes[i] = mine;
        } else if (r != mine) {
            const u32 s = r >> 9;
            if (s >= floor && (s < block_start || (r & 511) == SEVERAL_BLOCKS))
                reads[i] = now << 9 | SEVERAL_BLOCKS;
            else if (s == now)
                reads[i] = now << 9 | MANY;
            else
                reads[i] = mine;
        }
    }
}

// What the compiler calls at each access.
#define EACH(N, ALIGN)                                                              \
    HIDDEN void __tsan_read##N(void* p) { touch<false>(p, N, ALIGN); }              \
    HIDDEN void __tsan_write##N(void* p) { touch<true>(p, N, ALIGN); }              \
    HIDDEN void __tsan_volatile_read##N(void* p) { touch<false>(p, N, ALIGN); }     \
    HIDDEN void __tsan_volatile_write##N(void* p) { touch<true>(p, N, ALIGN); }     \
    HIDDEN void __tsan_unaligned_read##N(void* p) { touch<false>(p, N, ALIGN); }    \
    HIDDEN void __tsan_unaligned_write##N(void* p) { touch<true>(p, N, ALIGN); }
#define HIDDEN __attribute__((visibility("hidden")))
extern "C" {
EACH(1, 1)
EACH(2, 2)
EACH(4, 4)
EACH(8, 8)
EACH(16, 16)
// Whole structures; in device memory only quads.
HIDDEN void __tsan_read_range(void* p, size_t n) { touch<false>(p, n, n % 16 ? 1 : 16); }
HIDDEN void __tsan_write_range(void* p, size_t n) { touch<true>(p, n, n % 16 ? 1 : 16); }
HIDDEN void __tsan_init() {}
HIDDEN void __tsan_func_entry(void*) {}
HIDDEN void __tsan_func_exit() {}
}

// A new fiber runs until it first waits, like any other.
static void resume(int t) {
    me = t;
    fibers[t].state = READY;
    if (_setjmp(scheduler)) return;
    if (made[t]) _longjmp(fibers[t].at, 1);
    made[t] = true;
    getcontext(&start_context);
    start_context.uc_stack.ss_sp = stacks + t * STACK_BYTES;
    start_context.uc_stack.ss_size = STACK_BYTES;
    start_context.uc_link = nullptr;
    makecontext(&start_context, fiber_main, 0);
    setcontext(&start_context);
}

// Order k of n things: forwards, backwards, mixed.
static u32 pick(u32 k, u32 n, u32 order) {
    if (order == 0) return k;
    if (order == 1) return n - 1 - k;
    // A bijection of 0..n: multiply by something prime to n.
    u32 step = (2654435769u + 2 * order) % n | 1;
    auto gcd = [](u32 a, u32 b) {
        while (b) {
            const u32 c = a % b;
            a = b;
            b = c;
        }
        return a;
    };
    while (gcd(step, n) != 1) ++step;
    return (u32)(((u64)k * step + order) % n);
}

static void wait_mismatch(u32 a, u32 b) {
    report.kind = BARRIERS;
    report.block = block;
    report.thread = a;
    report.other = b;
    report.line = fibers[a].state == DONE ? 0 : fibers[a].line;
    report.other_line = fibers[b].state == DONE ? 0 : fibers[b].line;
}

static bool run_block(u32 order) {
    for (unsigned t = 0; t < threads; ++t) {
        fibers[t].state = READY;
        fibers[t].passed = fibers[t].line = 0;
        fibers[t].shuffles = 0;
    }
    for (;;) {
        for (unsigned k = 0; k < threads; ++k) {
            const u32 t = pick(k, threads, order);
            if (fibers[t].state != READY) continue;
            resume(t);
            if (report.kind) return false;
            if (*(volatile u64*)(stacks + t * STACK_BYTES) != 0x5241575f58545221ull) {
                report.kind = STACK;
                report.block = block;
                report.thread = t;
                return false;
            }
        }
        // Warps whose threads all stand at one shuffle go on by themselves.
        bool shuffled = false;
        for (unsigned first = 0; first < threads; first += 32) {
            unsigned at = 0, n = threads - first < 32 ? threads - first : 32;
            for (unsigned t = first; t < first + n; ++t) at += fibers[t].state == AT_SHUFFLE;
            if (at == 0) continue;
            for (unsigned t = first; t < first + n; ++t) {
                const Fiber &a = fibers[first], &b = fibers[t];
                if (a.state != b.state || a.line != b.line || a.size != b.size) {
                    wait_mismatch(first, t);
                    return false;
                }
            }
            for (unsigned t = first; t < first + n; ++t) fibers[t].state = READY;
            shuffled = true;
        }
        if (shuffled) continue;
        for (unsigned t = 1; t < threads; ++t)
            if (fibers[t].state != fibers[0].state || (fibers[0].state == AT_BARRIER && fibers[t].line != fibers[0].line)) {
                wait_mismatch(0, t);
                return false;
            }
        if (fibers[0].state == DONE) return true;
        for (unsigned t = 0; t < threads; ++t) {
            fibers[t].state = READY;
            fibers[t].passed = fibers[t].line;
        }
        ++device->stretch;
    }
}

// Runs one launch; false where something is wrong, which `*out` then tells.
extern "C" __attribute__((visibility("default"))) int rtx_launch(Device* d, void* function, int copy, char* const* at, const void* values,
                                                                 unsigned blocks, unsigned block_threads, u64 shared, u32 order, Report* out) {
    report = Report();
    const size_t in_section = __start_rtx_shared ? __stop_rtx_shared - __start_rtx_shared : 0;
    if (block_threads > MOST_THREADS || shared > DYNAMIC_BYTES || in_section > STATIC_BYTES) return 2;
    if (!stacks) {
        void* m = mmap(nullptr, MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED) return 2;
        stacks = (char*)m;
        for (int t = 0; t < MOST_THREADS; ++t) *(u64*)(stacks + t * STACK_BYTES) = 0x5241575f58545221ull;
    }
    device = d;
    kernel = function;
    is_copy = copy;
    table = at;
    arguments = (const u64*)values;
    grid = blocks;
    threads = block_threads;
    dynamic_bytes = shared;
    // Numbers of stretches run out: forget what was.
    if (d->stretch > 1u << 22) {
        for (u64 i = 0; i < d->bytes; ++i) {
            if (d->writes[i] != GUARD) d->writes[i] = 0;
            d->reads[i] = 0;
        }
        d->stretch = 0;
    }
    launch_start = ++d->stretch;
    bool good = true;
    for (unsigned k = 0; k < blocks && good; ++k) {
        block = pick(k, blocks, order);
        block_start = ++d->stretch;
        // Shared memory holds no zeros: a read of something that nobody wrote gives NaN.
        memset(rtx_dynamic, 0xff, dynamic_bytes);
        memset(dynamic_cells[0], 0, dynamic_bytes * sizeof(u32));
        memset(dynamic_cells[1], 0, dynamic_bytes * sizeof(u32));
        if (in_section) {
            memset(__start_rtx_shared, 0xff, in_section);
            memset(static_cells[0], 0, in_section * sizeof(u32));
            memset(static_cells[1], 0, in_section * sizeof(u32));
        }
        good = run_block(order);
    }
    // What stands in the middle of a kernel cannot go on.
    if (!good) memset(made, 0, sizeof made);
    *out = report;
    return good ? 0 : 1;
}

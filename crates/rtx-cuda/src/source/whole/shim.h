// What generated kernels need to run as C++ on the host: the threads of a block are threads of the system,
// blocks run one after the other.
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static

struct Index { unsigned x; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim, gridDim;

static float __int_as_float(int v) { float f; memcpy(&f, &v, 4); return f; }
static double __longlong_as_double(long long v) { double f; memcpy(&f, &v, 8); return f; }

// The number of waits so far tells whether a kernel needs its threads at the same time.
struct Barrier {
    std::mutex m;
    std::condition_variable all;
    unsigned waiting = 0, round = 0;
    void wait(unsigned n) {
        std::unique_lock<std::mutex> lock(m);
        const unsigned mine = round;
        if (++waiting == n) {
            waiting = 0;
            ++round;
            all.notify_all();
        } else {
            all.wait(lock, [&] { return round != mine; });
        }
    }
};
static Barrier barrier;
static void __syncthreads() { barrier.wait(blockDim.x); }

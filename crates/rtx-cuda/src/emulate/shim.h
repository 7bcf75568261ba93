// What the generated text needs to be C++. Only what the text uses is here: anything new fails to compile first, so
// that its meaning between threads is thought about. Included before the text, whose line numbers stay its own.
#pragma once
#include <math.h>

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
// The host's compiler may not move loads across a barrier on the strength of a promise about pointers.
#define __restrict__
// One section, so that the runtime knows where shared memory lies. Blocks run one after the other.
#define __shared__ static __attribute__((section("rtx_shared")))

struct alignas(16) int4 { int x, y, z, w; };
struct RtxIndex { unsigned x, y, z; };

extern "C" {
// Constant for the thread that asks.
RtxIndex rtx_thread_index() __attribute__((const));
RtxIndex rtx_block_index() __attribute__((const));
RtxIndex rtx_block_extent() __attribute__((const));
RtxIndex rtx_grid_extent() __attribute__((const));
void rtx_barrier(int line);
void rtx_shuffle(int line, unsigned mask, const void* mine, void* other, int size, int distance);
extern char rtx_dynamic[];
}
#define threadIdx rtx_thread_index()
#define blockIdx rtx_block_index()
#define blockDim rtx_block_extent()
#define gridDim rtx_grid_extent()
#define __syncthreads() rtx_barrier(__LINE__)
#define __shfl_xor_sync(mask, value, distance) rtx_shuffle_xor(__LINE__, mask, value, distance)

template <class T> static inline T rtx_shuffle_xor(int line, unsigned mask, T value, int distance) {
    T other;
    rtx_shuffle(line, mask, &value, &other, sizeof value, distance);
    return other;
}

static inline float __int_as_float(int v) { float f; __builtin_memcpy(&f, &v, 4); return f; }
static inline double __longlong_as_double(long long v) { double f; __builtin_memcpy(&f, &v, 8); return f; }

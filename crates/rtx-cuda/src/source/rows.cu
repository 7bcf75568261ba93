// Products and sums of a block of rows, by one block of RTX_THREADS threads.

#define RTX_THREADS 256

// Four neighbours that move as one.
template <class T> struct __align__(16) Quad { T v[4]; };

// out (m x N) = a (m x K) w (K x N), w with distances KS along k and NS along n; any extents, one thread a sum.
template <class T>
__device__ __noinline__ void rtx_dot_plain(T* __restrict__ out, const T* __restrict__ a, const T* __restrict__ w, int m, int K, int N, int KS,
                                           int NS) {
    for (int e = threadIdx.x; e < m * N; e += RTX_THREADS) {
        const int row = e / N, n = e % N;
        T sum = 0;
        for (int k = 0; k < K; ++k) sum = rtx_fma(a[row * K + k], w[k * KS + n * NS], sum);
        out[e] = sum;
    }
}

// The same for a few columns: one warp a row, lanes along k.
template <class T, int N>
__device__ __noinline__ void rtx_dot_few_columns(T* __restrict__ out, const T* __restrict__ a, const T* __restrict__ w, int m, int K, int KS,
                                                 int NS) {
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < m; row += RTX_THREADS / 32) {
        T sums[N];
#pragma unroll
        for (int n = 0; n < N; ++n) sums[n] = 0;
        for (int k = lane; k < K; k += 32) {
            const T x = a[row * K + k];
#pragma unroll
            for (int n = 0; n < N; ++n) sums[n] = rtx_fma(x, w[k * KS + n * NS], sums[n]);
        }
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
            for (int d = 16; d > 0; d /= 2) sums[n] += __shfl_xor_sync(0xffffffffu, sums[n], d);
            if (lane == n) out[row * N + n] = sums[n];
        }
    }
}

#define RTX_DEPTH 32
#define RTX_COLUMNS 128

// The same for K and N of whole quads. A warp has 8 rows of 128 columns; RG warps share out the rows of a tile, and
// where there are few rows the 8 / RG others take parts of the sum.
template <class T>
__device__ __noinline__ void rtx_dot_rows(T* __restrict__ out, const T* __restrict__ a, const T* __restrict__ w, int m, int K, int N,
                                          int KS, int NS, int RG, int row0, T* shared) {
    const int KG = 8 / RG, ROWS = 8 * RG;
    T* as = shared;
    T* ws = shared + ROWS * RTX_DEPTH;
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, rg = warp % RG, kg = warp / RG;
    for (int col0 = 0; col0 < N; col0 += RTX_COLUMNS) {
        T sums[8][4];
#pragma unroll
        for (int r = 0; r < 8; ++r)
#pragma unroll
            for (int c = 0; c < 4; ++c) sums[r][c] = 0;
        // The next panels are on their way while these are worked on.
        Quad<T> next_a[2], next_w[4];
        const auto fetch = [&](int k0) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int i = tid + j * RTX_THREADS, r = i / (RTX_DEPTH / 4), k = k0 + i % (RTX_DEPTH / 4) * 4;
                next_a[j] = Quad<T>{};
                if (r < ROWS && row0 + r < m && k < K) next_a[j] = *(const Quad<T>*)(a + (row0 + r) * K + k);
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int i = tid + j * RTX_THREADS;
                next_w[j] = Quad<T>{};
                if (NS == 1) {
                    const int k = k0 + i / (RTX_COLUMNS / 4), n = col0 + i % (RTX_COLUMNS / 4) * 4;
                    if (k < K && n < N) next_w[j] = *(const Quad<T>*)(w + k * KS + n);
                } else {
                    const int k = k0 + i / RTX_COLUMNS * 4, n = col0 + i % RTX_COLUMNS;
                    if (k < K && n < N) next_w[j] = *(const Quad<T>*)(w + n * NS + k);
                }
            }
        };
        fetch(0);
        for (int k0 = 0; k0 < K; k0 += RTX_DEPTH) {
            __syncthreads();
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int i = tid + j * RTX_THREADS;
                if (i < ROWS * RTX_DEPTH / 4) *(Quad<T>*)(as + i * 4) = next_a[j];
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int i = tid + j * RTX_THREADS;
                if (NS == 1) {
                    *(Quad<T>*)(ws + i * 4) = next_w[j];
                } else {
#pragma unroll
                    for (int c = 0; c < 4; ++c) ws[(i / RTX_COLUMNS * 4 + c) * RTX_COLUMNS + i % RTX_COLUMNS] = next_w[j].v[c];
                }
            }
            __syncthreads();
            if (k0 + RTX_DEPTH < K) fetch(k0 + RTX_DEPTH);
            const int PART = RTX_DEPTH / KG;
#pragma unroll 1
            for (int k = kg * PART; k < (kg + 1) * PART; k += 4) {
                Quad<T> x[8];
#pragma unroll
                for (int r = 0; r < 8; ++r) x[r] = *(const Quad<T>*)(as + (rg * 8 + r) * RTX_DEPTH + k);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const Quad<T> y = *(const Quad<T>*)(ws + (k + c) * RTX_COLUMNS + lane * 4);
#pragma unroll
                    for (int r = 0; r < 8; ++r)
#pragma unroll
                        for (int n = 0; n < 4; ++n) sums[r][n] = rtx_fma(x[r].v[c], y.v[n], sums[r][n]);
                }
            }
        }
        const int n = col0 + lane * 4;
        if (KG > 1) {
            // Parts of the sum are added in order, one after the other, through shared memory.
            for (int part = 1; part < KG; ++part) {
                __syncthreads();
                if (kg == part)
#pragma unroll
                    for (int r = 0; r < 8; ++r) {
                        Quad<T> q;
#pragma unroll
                        for (int c = 0; c < 4; ++c) q.v[c] = sums[r][c];
                        *(Quad<T>*)(shared + (rg * 8 + r) * RTX_COLUMNS + lane * 4) = q;
                    }
                __syncthreads();
                if (kg == 0)
#pragma unroll
                    for (int r = 0; r < 8; ++r) {
                        const Quad<T> q = *(const Quad<T>*)(shared + (rg * 8 + r) * RTX_COLUMNS + lane * 4);
#pragma unroll
                        for (int c = 0; c < 4; ++c) sums[r][c] += q.v[c];
                    }
            }
        }
        if (kg == 0 && n < N)
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const int row = row0 + rg * 8 + r;
                if (row < m) {
                    Quad<T> q;
#pragma unroll
                    for (int c = 0; c < 4; ++c) q.v[c] = sums[r][c];
                    *(Quad<T>*)(out + row * N + n) = q;
                }
            }
    }
}

template <class T>
__device__ void rtx_dot_tiled(T* __restrict__ out, const T* __restrict__ a, const T* __restrict__ w, int m, int K, int N, int KS, int NS,
                              T* shared) {
    for (int row = 0; row < m;) {
        const int left = m - row, groups = left > 32 ? 8 : left > 16 ? 4 : left > 8 ? 2 : 1;
        rtx_dot_rows(out, a, w, m, K, N, KS, NS, groups, row, shared);
        row += 8 * groups;
    }
}

// A sum over rows: pairs of tiles x (rows x M) and y (rows x N) at equal distances in memory, acc (M x N) [+]= x^T y.
template <class T>
__device__ __noinline__ void rtx_sum_dot_plain(T* __restrict__ acc, const T* const* x, const T* const* y, int M, int N, int pairs, int rows,
                                               bool first) {
    for (int e = threadIdx.x; e < M * N; e += RTX_THREADS) {
        const int i = e / N, j = e % N;
        T sum = first ? (T)0 : acc[e];
        for (int p = 0; p < pairs; ++p)
            for (int r = 0; r < rows; ++r) sum = rtx_fma(x[p][r * M + i], y[p][r * N + j], sum);
        acc[e] = sum;
    }
}

#define RTX_SUM_DEPTH 16

// The same for M and N of whole quads: tiles of 128 x 128, each thread 8 x 8 of it.
template <class T>
__device__ __noinline__ void rtx_sum_dot_tiled(T* __restrict__ acc, const T* const* x, const T* const* y, int M, int N, int pairs, int rows,
                                               bool first, T* shared) {
    T* xs = shared;
    T* ys = shared + RTX_SUM_DEPTH * 128;
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const int depth = pairs * rows;
    for (int i0 = 0; i0 < M; i0 += 128)
        for (int j0 = 0; j0 < N; j0 += 128) {
            T sums[8][8];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] = 0;
            for (int k0 = 0; k0 < depth; k0 += RTX_SUM_DEPTH) {
                __syncthreads();
                for (int i = tid; i < RTX_SUM_DEPTH * 32; i += RTX_THREADS) {
                    const int k = i / 32, c = i % 32 * 4;
                    Quad<T> q = {}, s = {};
                    if (k0 + k < depth) {
                        const int p = (k0 + k) / rows, r = (k0 + k) % rows;
                        if (i0 + c < M) q = *(const Quad<T>*)(x[p] + r * M + i0 + c);
                        if (j0 + c < N) s = *(const Quad<T>*)(y[p] + r * N + j0 + c);
                    }
                    *(Quad<T>*)(xs + k * 128 + c) = q;
                    *(Quad<T>*)(ys + k * 128 + c) = s;
                }
                __syncthreads();
#pragma unroll 4
                for (int k = 0; k < RTX_SUM_DEPTH; ++k) {
                    const Quad<T> a0 = *(const Quad<T>*)(xs + k * 128 + ty * 4), a1 = *(const Quad<T>*)(xs + k * 128 + 64 + ty * 4);
                    const Quad<T> b0 = *(const Quad<T>*)(ys + k * 128 + tx * 4), b1 = *(const Quad<T>*)(ys + k * 128 + 64 + tx * 4);
#pragma unroll
                    for (int i = 0; i < 4; ++i)
#pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            sums[i][j] = rtx_fma(a0.v[i], b0.v[j], sums[i][j]);
                            sums[i][j + 4] = rtx_fma(a0.v[i], b1.v[j], sums[i][j + 4]);
                            sums[i + 4][j] = rtx_fma(a1.v[i], b0.v[j], sums[i + 4][j]);
                            sums[i + 4][j + 4] = rtx_fma(a1.v[i], b1.v[j], sums[i + 4][j + 4]);
                        }
                }
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int row = i0 + (i / 4) * 64 + ty * 4 + i % 4, column = j0 + half * 64 + tx * 4;
                    if (row < M && column < N) {
                        Quad<T>* to = (Quad<T>*)(acc + row * N + column);
                        Quad<T> q;
#pragma unroll
                        for (int c = 0; c < 4; ++c) q.v[c] = sums[i][half * 4 + c];
                        if (!first) {
                            const Quad<T> before = *to;
#pragma unroll
                            for (int c = 0; c < 4; ++c) q.v[c] += before.v[c];
                        }
                        *to = q;
                    }
                }
        }
}

// Copies a whole array, for outputs that are inputs, constants or other outputs.
extern "C" __global__ void rtx_copy(char* const* __restrict__ at, long long from, long long to, long long bytes) {
    const char* source = at[from];
    char* target = at[to];
    const long long step = (long long)gridDim.x * blockDim.x, first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long whole = bytes / 16;
    for (long long i = first; i < whole; i += step) ((int4*)target)[i] = ((const int4*)source)[i];
    for (long long i = whole * 16 + first; i < bytes; i += step) target[i] = source[i];
}

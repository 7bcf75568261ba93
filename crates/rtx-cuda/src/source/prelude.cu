// Device functions that generated kernels use. Compiled by NVRTC without headers, contraction off
// (--fmad=false): products and sums are fused only where fma is written.

/// What a launch tells every kernel.
struct Launch {
    long long rows[8];     // run-time row counts, by domain
    long long block_rows;  // rows of one block of a row kernel
    char* scratch;         // scratch of the blocks
    char* partials;        // partial accumulators
    long long count;       // units of work, where the kernel cannot tell from `rows`
};

// ---- Limits ----

template <class T> struct rtx_limits;
template <> struct rtx_limits<float> {
    static __device__ __forceinline__ float low() { return __int_as_float((int)0xff800000u); }
    static __device__ __forceinline__ float high() { return __int_as_float(0x7f800000); }
    static __device__ __forceinline__ float nan() { return __int_as_float(0x7fc00000); }
};
template <> struct rtx_limits<double> {
    static __device__ __forceinline__ double low() { return __longlong_as_double((long long)0xfff0000000000000ull); }
    static __device__ __forceinline__ double high() { return __longlong_as_double(0x7ff0000000000000ll); }
    static __device__ __forceinline__ double nan() { return __longlong_as_double(0x7ff8000000000000ll); }
};
template <> struct rtx_limits<int> {
    static __device__ __forceinline__ int low() { return -2147483647 - 1; }
    static __device__ __forceinline__ int high() { return 2147483647; }
};
template <> struct rtx_limits<long long> {
    static __device__ __forceinline__ long long low() { return -9223372036854775807ll - 1; }
    static __device__ __forceinline__ long long high() { return 9223372036854775807ll; }
};
template <> struct rtx_limits<unsigned char> {
    static __device__ __forceinline__ unsigned char low() { return 0; }
    static __device__ __forceinline__ unsigned char high() { return 255; }
};

// ---- Arithmetic: integers wrap, a truth value adds as or and multiplies as and ----

__device__ __forceinline__ float rtx_add(float a, float b) { return a + b; }
__device__ __forceinline__ double rtx_add(double a, double b) { return a + b; }
__device__ __forceinline__ int rtx_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ __forceinline__ long long rtx_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
__device__ __forceinline__ unsigned char rtx_add(unsigned char a, unsigned char b) { return (unsigned char)(a | b); }

__device__ __forceinline__ int rtx_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
__device__ __forceinline__ long long rtx_sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }

__device__ __forceinline__ float rtx_mul(float a, float b) { return a * b; }
__device__ __forceinline__ double rtx_mul(double a, double b) { return a * b; }
__device__ __forceinline__ int rtx_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ __forceinline__ long long rtx_mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
__device__ __forceinline__ unsigned char rtx_mul(unsigned char a, unsigned char b) { return (unsigned char)(a & b); }

/// a b + c, rounded once for floats.
__device__ __forceinline__ float rtx_fma(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double rtx_fma(double a, double b, double c) { return fma(a, b, c); }
template <class T> __device__ __forceinline__ T rtx_fma(T a, T b, T c) { return rtx_add(rtx_mul(a, b), c); }

/// Quotient of integers; zero where it does not exist (b = 0) or does not fit.
template <class T> __device__ __forceinline__ T rtx_div(T a, T b) {
    if (b == 0 || (b == (T)-1 && a == rtx_limits<T>::low())) return 0;
    return a / b;
}

template <class T> __device__ __forceinline__ T rtx_neg(T a) { return rtx_sub((T)0, a); }
template <class T> __device__ __forceinline__ T rtx_abs(T a) { return a < 0 ? rtx_neg(a) : a; }
/// -1, 0 or 1; zeros keep their sign and NaN stays.
template <class T> __device__ __forceinline__ T rtx_sign(T a) { return a > (T)0 ? (T)1 : a < (T)0 ? (T)-1 : a; }

/// Larger of the two, the first where equal; a NaN in the first place wins, one in the second too.
template <class T> __device__ __forceinline__ T rtx_max(T a, T b) { return a >= b || a != a ? a : b; }
template <class T> __device__ __forceinline__ T rtx_min(T a, T b) { return a <= b || a != a ? a : b; }

// ---- Conversions: saturating, NaN to zero ----

template <class F> __device__ __forceinline__ int rtx_to_int(F a) {
    if (a != a) return 0;
    if (a >= (F)2147483648.0) return rtx_limits<int>::high();
    if (a <= (F)-2147483648.0) return rtx_limits<int>::low();
    return (int)a;
}
template <class F> __device__ __forceinline__ long long rtx_to_long(F a) {
    if (a != a) return 0;
    if (a >= (F)9223372036854775808.0) return rtx_limits<long long>::high();
    if (a <= (F)-9223372036854775808.0) return rtx_limits<long long>::low();
    return (long long)a;
}

/// Row of a table: indices outside are clamped.
__device__ __forceinline__ long long rtx_row(long long index, long long rows) {
    return index >= rows ? rows - 1 : index < 0 ? 0 : index;
}

// ---- Reductions ----

struct rtx_sum {
    template <class T> static __device__ __forceinline__ T neutral() { return (T)0; }
    template <class T> static __device__ __forceinline__ T combine(T a, T b) { return rtx_add(a, b); }
};
struct rtx_prod {
    template <class T> static __device__ __forceinline__ T neutral() { return (T)1; }
    template <class T> static __device__ __forceinline__ T combine(T a, T b) { return rtx_mul(a, b); }
};
/// A NaN wins over every number.
struct rtx_largest {
    template <class T> static __device__ __forceinline__ T neutral() { return rtx_limits<T>::low(); }
    template <class T> static __device__ __forceinline__ T combine(T a, T b) { return b > a || b != b ? b : a; }
};
struct rtx_smallest {
    template <class T> static __device__ __forceinline__ T neutral() { return rtx_limits<T>::high(); }
    template <class T> static __device__ __forceinline__ T combine(T a, T b) { return b < a || b != b ? b : a; }
};

/// Combines terms one after the other.
template <class K, class T> struct rtx_serial {
    T value;
    __device__ __forceinline__ rtx_serial() : value(K::template neutral<T>()) {}
    __device__ __forceinline__ void add(T x) { value = K::combine(value, x); }
    __device__ __forceinline__ void fma(T x, T y) { value = rtx_fma(x, y, value); }
    __device__ __forceinline__ T total() const { return value; }
};

/// Sum of many floats: runs of 64 terms, runs of 64 runs and so on, so that the rounding error grows like
/// the logarithm of the number of terms.
template <class T> struct rtx_cascade {
    T low, middle, high, top;
    unsigned count;
    __device__ __forceinline__ rtx_cascade() : low(0), middle(0), high(0), top(0), count(0) {}
    __device__ __forceinline__ void carry() {
        if ((++count & 63u) == 0) {
            middle += low;
            low = 0;
            if ((count & 4095u) == 0) {
                high += middle;
                middle = 0;
                if ((count & 262143u) == 0) {
                    top += high;
                    high = 0;
                }
            }
        }
    }
    __device__ __forceinline__ void add(T x) { low += x; carry(); }
    __device__ __forceinline__ void fma(T x, T y) { low = rtx_fma(x, y, low); carry(); }
    __device__ __forceinline__ T total() const { return top + (high + (middle + low)); }
};

/// Combines one value of each thread of the block by a tree of fixed order; all threads get the result.
/// blockDim.x is a power of two, `part` holds blockDim.x elements of shared memory.
template <class K, class T> __device__ __forceinline__ T rtx_block_fold(T value, T* part) {
    part[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] = K::combine(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    const T all = part[0];
    __syncthreads();
    return all;
}

// ---- Random numbers: Philox 4x32-10 (Salmon et al. 2011) by element index ----

struct rtx_words { unsigned w[4]; };

__device__ __forceinline__ rtx_words rtx_philox(unsigned long long index, unsigned long long key) {
    unsigned c0 = (unsigned)index, c1 = (unsigned)(index >> 32), c2 = 0, c3 = 0;
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
        const unsigned h0 = (unsigned)(p0 >> 32), h1 = (unsigned)(p1 >> 32);
        c0 = h1 ^ c1 ^ k0;
        c2 = h0 ^ c3 ^ k1;
        c1 = (unsigned)p1;
        c3 = (unsigned)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    rtx_words r = {{c0, c1, c2, c3}};
    return r;
}

/// Uniform in [0, 1) from 53 bits.
__device__ __forceinline__ double rtx_unit(unsigned hi, unsigned lo) {
    return (double)(((unsigned long long)hi << 21) ^ ((unsigned long long)lo >> 11)) / 9007199254740992.0;
}

/// Element `index` of the uniform stream of `key`, in [0, 1).
template <class T> __device__ __forceinline__ T rtx_random_uniform(unsigned long long key, unsigned long long index);
template <> __device__ __forceinline__ float rtx_random_uniform<float>(unsigned long long key, unsigned long long index) {
    return (float)(rtx_philox(index, key).w[0] >> 8) / 16777216.0f;
}
template <> __device__ __forceinline__ double rtx_random_uniform<double>(unsigned long long key, unsigned long long index) {
    const rtx_words c = rtx_philox(index, key);
    return rtx_unit(c.w[0], c.w[1]);
}

/// Element `index` of the standard normal stream of `key` (Box and Muller 1958, in double precision).
template <class T> __device__ __forceinline__ T rtx_random_normal(unsigned long long key, unsigned long long index) {
    const rtx_words c = rtx_philox(index, key);
    const double u = rtx_unit(c.w[0], c.w[1]), v = rtx_unit(c.w[2], c.w[3]);
    return (T)(sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586476925 * v));
}

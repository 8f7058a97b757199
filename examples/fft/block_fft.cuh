// A block FFT: each group of threads of a CUDA block transforms one row of complex numbers, in registers.
//
//     block_fft::transform<float, 128, 8, 4, false>::run(data, shared);
//
// All threads of a block of (size / elements, batch) threads call this. The threads with threadIdx.y == row transform
// that row. Thread t holds elements t, t + stride, t + 2 stride, ... of its row, before and after the call, in natural
// order, where stride = size / elements. Nothing is scaled: a forward and then an inverse transform give `size` times
// the input.
//
// The algorithm is Stockham's FFT: size = R1 * R2 * ..., where each factor is at most `elements`. For each
// j < size / R, a pass of radix R takes the elements j, j + size / R, ..., which thread j % stride already holds, so a
// pass runs in registers. Between passes the threads exchange elements through shared memory; after the last pass all
// are in place.
//
// The file needs no header and compiles as C++17, so tests compile it for the CPU too.
#pragma once

namespace block_fft {

template <class T>
struct alignas(2 * sizeof(T)) complex {
    T re, im;
};

// ---- Twiddle factors: exp(-2 pi i q / turn), computed by the compiler in double precision.

// cos and sin of x, |x| <= pi/4, by their Taylor series, to about one unit in the last place.
__device__ constexpr double cos_small(double x) {
    const double y = x * x;
    double sum = 0;
    for (int n = 18; n > 0; n -= 2) sum = (1 - sum) * y / (n * (n - 1));
    return 1 - sum;
}

__device__ constexpr double sin_small(double x) {
    const double y = x * x;
    double sum = 0;
    for (int n = 19; n > 1; n -= 2) sum = (1 - sum) * y / (n * (n - 1));
    return x - x * sum;
}

// The angle is reduced to the first octant as an integer, so the reduction has no rounding error.
__device__ constexpr complex<double> unit_root(int q, int turn) {
    constexpr double tau = 6.283185307179586476925286766559;
    q %= turn;
    if (2 * q > turn) {
        const complex<double> w = unit_root(turn - q, turn);
        return {w.re, -w.im};
    }
    if (4 * q > turn) {
        const complex<double> w = unit_root(turn - 2 * q, 2 * turn);
        return {-w.re, w.im};
    }
    if (8 * q > turn) {
        const complex<double> w = unit_root(turn - 4 * q, 4 * turn);
        return {-w.im, -w.re};
    }
    const double x = tau * q / turn;
    return {cos_small(x), -sin_small(x)};
}

__device__ constexpr int log2(int n) { return n == 1 ? 0 : 1 + log2(n / 2); }

// For a pass of radix R over sub-transforms of length Ns: w^k, w^2k, w^4k, ... for all k < Ns, where w has order
// Ns * R. The other powers are products of these, at most three, which needs fewer loads than a table of all powers.
template <class T, int Ns, int R>
struct twiddle_table {
    complex<T> value[log2(R)][Ns];

    __device__ constexpr twiddle_table() : value() {
        for (int row = 0; row < log2(R); ++row)
            for (int k = 0; k < Ns; ++k) {
                const complex<double> w = unit_root(k << row, Ns * R);
                value[row][k] = {T(w.re), T(w.im)};
            }
    }
};

template <class T, int Ns, int R>
__device__ constexpr twiddle_table<T, Ns, R> twiddles{};

template <bool Inverse, class T>
__device__ __forceinline__ complex<T> rotate(complex<T> a, complex<T> w) {
    if constexpr (Inverse) w.im = -w.im;
    return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}

template <class T>
__device__ __forceinline__ complex<T> multiply(complex<T> a, complex<T> b) {
    return rotate<false>(a, b);
}

// ---- Transform of R numbers within one thread.

// a * exp(-+2 pi i K / R): no product for quarter turns, two products for odd eighths.
template <int K, int R, bool Inverse, class T>
__device__ __forceinline__ complex<T> rotate_by(complex<T> a) {
    if constexpr (K == 0) {
        return a;
    } else if constexpr (4 * K == R) {
        if constexpr (Inverse) return {-a.im, a.re};
        else return {a.im, -a.re};
    } else if constexpr (8 * K == R || 8 * K == 3 * R) {
        constexpr T h = T(0.70710678118654752440);
        const complex<T> b = rotate_by<R / 4, R, Inverse>(a);
        if constexpr (8 * K == R) return {(a.re + b.re) * h, (a.im + b.im) * h};
        else return {(b.re - a.re) * h, (b.im - a.im) * h};
    } else {
        constexpr complex<double> w = unit_root(K, R);
        return rotate<Inverse>(a, complex<T>{T(w.re), T(w.im)});
    }
}

template <int R, int K, bool Inverse, class T>
__device__ __forceinline__ void combine(const complex<T> (&even)[R / 2], const complex<T> (&odd)[R / 2],
                                        complex<T> (&v)[R]) {
    if constexpr (K < R / 2) {
        const complex<T> a = even[K];
        const complex<T> b = rotate_by<K, R, Inverse>(odd[K]);
        v[K] = {a.re + b.re, a.im + b.im};
        v[K + R / 2] = {a.re - b.re, a.im - b.im};
        combine<R, K + 1, Inverse>(even, odd, v);
    }
}

template <int R, bool Inverse, class T>
__device__ __forceinline__ void butterfly(complex<T> (&v)[R]) {
    if constexpr (R > 1) {
        complex<T> even[R / 2], odd[R / 2];
#pragma unroll
        for (int i = 0; i < R / 2; ++i) {
            even[i] = v[2 * i];
            odd[i] = v[2 * i + 1];
        }
        butterfly<R / 2, Inverse>(even);
        butterfly<R / 2, Inverse>(odd);
        combine<R, 0, Inverse>(even, odd, v);
    }
}

// ---- Transform of a row by `stride` threads.

__device__ constexpr int min(int a, int b) { return a < b ? a : b; }
__device__ constexpr int max(int a, int b) { return a > b ? a : b; }

template <class T, int Size, int Elements, int Batch, bool Inverse>
struct transform {
    static constexpr int stride = Size / Elements;  // also the number of threads of a row
    static constexpr int banks = 128 / int(sizeof(T));  // elements that shared memory serves at once
    static constexpr int lane = min(banks, stride);  // the number of those from one row

    // Real and imaginary parts are in two planes of shared memory. Rows that are too long for that use one plane twice.
    static constexpr int planes = Size * sizeof(T) > 16384 ? 1 : 2;

    static_assert((Size & (Size - 1)) == 0 && (Elements & (Elements - 1)) == 0, "powers of two");
    static_assert(2 <= Elements && Elements <= Size && Elements <= 16, "2 <= Elements <= min(Size, 16)");

    // The largest radix for the pass after one that completed sub-transforms of length Ns.
    static __device__ constexpr int radix(int Ns) { return min(Elements, Size / Ns); }

    // After a pass of radix R over length Ns, consecutive threads write runs of Ns elements, Ns * R apart. Ns unused
    // elements after each `chunk` spread the runs over all banks. Reads are consecutive, and stay so within a chunk.
    static __device__ constexpr int chunk(int Ns) { return max(lane, Ns * radix(Ns)); }
    static __device__ constexpr int padding(int Ns) { return Ns < lane ? Ns : 0; }
    static __device__ constexpr int padded(int Ns, int index) { return index + index / chunk(Ns) * padding(Ns); }

    static __device__ constexpr int plane_size() {
        int longest = 0;
        for (int Ns = 1; Ns * radix(Ns) < Size; Ns *= radix(Ns)) longest = max(longest, padded(Ns, Size));
        return longest;
    }

    // Rows that are accessed together start `stride` banks apart.
    static __device__ constexpr int row_size() {
        const int size = planes * plane_size();
        return size == 0 || stride >= banks ? size : size + (stride + banks - size % banks) % banks;
    }

    static constexpr int shared_bytes = row_size() * Batch * int(sizeof(T));

    // The threads of a row are in one warp if there are at most 32.
    static __device__ __forceinline__ void barrier() {
        if constexpr (stride <= 32) __syncwarp();
        else __syncthreads();
    }

    template <int Ns>
    static __device__ __forceinline__ void pass(complex<T> (&v)[Elements]) {
        constexpr int R = radix(Ns), butterflies = Elements / R;
#pragma unroll
        for (int b = 0; b < butterflies; ++b) {
            complex<T> u[R];
#pragma unroll
            for (int r = 0; r < R; ++r) u[r] = v[b + r * butterflies];
            if constexpr (Ns > 1) {
                const int k = (threadIdx.x + b * stride) % Ns;
                complex<T> w[R];
#pragma unroll
                for (int row = 0; row < log2(R); ++row) {
                    w[1 << row] = twiddles<T, Ns, R>.value[row][k];
#pragma unroll
                    for (int r = 1; r < 1 << row; ++r) w[(1 << row) + r] = multiply(w[1 << row], w[r]);
                }
#pragma unroll
                for (int r = 1; r < R; ++r) u[r] = rotate<Inverse>(u[r], w[r]);
            }
            butterfly<R, Inverse>(u);
#pragma unroll
            for (int r = 0; r < R; ++r) v[b + r * butterflies] = u[r];
        }
    }

    template <int Ns>
    static __device__ __forceinline__ void scatter(const complex<T> (&v)[Elements], T* plane, T complex<T>::*part) {
        constexpr int R = radix(Ns), butterflies = Elements / R;
#pragma unroll
        for (int b = 0; b < butterflies; ++b) {
            const int j = threadIdx.x + b * stride;
            const int first = j / Ns * (Ns * R) + j % Ns;
#pragma unroll
            for (int r = 0; r < R; ++r) plane[padded(Ns, first + r * Ns)] = v[b + r * butterflies].*part;
        }
    }

    template <int Ns>
    static __device__ __forceinline__ void gather(complex<T> (&v)[Elements], const T* plane, T complex<T>::*part) {
#pragma unroll
        for (int i = 0; i < Elements; ++i) v[i].*part = plane[padded(Ns, int(threadIdx.x) + i * stride)];
    }

    template <int Ns>
    static __device__ __forceinline__ void exchange(complex<T> (&v)[Elements], T* row) {
        T* const second = planes == 2 ? row + plane_size() : row;
        barrier();  // all earlier accesses to the memory, including the caller's, are complete
        scatter<Ns>(v, row, &complex<T>::re);
        if constexpr (planes == 2) scatter<Ns>(v, second, &complex<T>::im);
        barrier();
        gather<Ns>(v, row, &complex<T>::re);
        if constexpr (planes == 1) {
            barrier();
            scatter<Ns>(v, second, &complex<T>::im);
            barrier();
        }
        gather<Ns>(v, second, &complex<T>::im);
    }

    template <int Ns>
    static __device__ __forceinline__ void passes(complex<T> (&v)[Elements], T* row) {
        pass<Ns>(v);
        if constexpr (Ns * radix(Ns) < Size) {
            exchange<Ns>(v, row);
            passes<Ns * radix(Ns)>(v, row);
        }
    }

    // `data`: the thread's `Elements` complex numbers as re, im, re, im, ...; `shared`: `shared_bytes` of shared
    // memory, aligned to T (Numba guarantees no larger alignment of complex arrays). A caller that writes to `shared`
    // after the call must synchronise first.
    static __device__ __forceinline__ void run(T* data, T* shared) {
        complex<T> v[Elements];
#pragma unroll
        for (int i = 0; i < Elements; ++i) v[i] = {data[2 * i], data[2 * i + 1]};
        passes<1>(v, shared + threadIdx.y * row_size());
#pragma unroll
        for (int i = 0; i < Elements; ++i) {
            data[2 * i] = v[i].re;
            data[2 * i + 1] = v[i].im;
        }
    }
};

}  // namespace block_fft

// Vector: 32 bytes of numbers, processed together. The compiler maps the operations to the
// instruction set.
#pragma once
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace feta {
namespace FETA_ISA {

template <class T> struct Pack;
template <> struct Pack<float> {
    typedef float type __attribute__((vector_size(32)));
    typedef int32_t integer;
    typedef int32_t mask __attribute__((vector_size(32)));
    static constexpr int size = 8;
};
template <> struct Pack<double> {
    typedef double type __attribute__((vector_size(32)));
    typedef int64_t integer;
    typedef int64_t mask __attribute__((vector_size(32)));
    static constexpr int size = 4;
};

template <class T> using Vec = typename Pack<T>::type;
template <class T> using Mask = typename Pack<T>::mask;
template <class T> constexpr int lanes_of = Pack<T>::size;

template <class T> inline Vec<T> load(const T* from) {
    Vec<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
template <class T> inline void store(T* to, Vec<T> v) { std::memcpy(to, &v, sizeof v); }
template <class T> inline Vec<T> broadcast(T x) { return x - Vec<T>{}; }
template <class T> inline Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) { return m ? a : b; }
// If an argument is NaN, `larger` and `smaller` return b.
template <class T> inline Vec<T> larger(Vec<T> a, Vec<T> b) { return a > b ? a : b; }
template <class T> inline Vec<T> smaller(Vec<T> a, Vec<T> b) { return a < b ? a : b; }
template <class T> inline Vec<T> absolute(Vec<T> a) {
    const Mask<T> magnitude_bits = ~(Mask<T>)(-Vec<T>{});  // all but the sign bit
    return (Vec<T>)((Mask<T>)a & magnitude_bits);
}

template <class T> inline bool any(Mask<T> m) {
#if defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#endif
    int64_t words[4];
    std::memcpy(words, &m, sizeof m);
    return words[0] | words[1] | words[2] | words[3];
}
// Return one bit per lane.
inline unsigned lane_bits(Mask<double> m) {
#if defined(__AVX2__)
    return unsigned(_mm256_movemask_pd((__m256d)m));
#endif
    return unsigned((m[0] & 1) | (m[1] & 2) | (m[2] & 4) | (m[3] & 8));
}
template <class T> inline bool all(Mask<T> m) { return !any<T>(~m); }

template <class T> inline int padded(int n) {
    return (n + lanes_of<T> - 1) / lanes_of<T> * lanes_of<T>;
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FETA_SHUFFLE(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#if !defined(FETA_SHUFFLE)  // GCC before version 12
#define FETA_SHUFFLE(T, a, b, ...) __builtin_shuffle(a, b, Mask<T>{__VA_ARGS__})
#endif

// Transpose rows into lanes: vector n holds element n of every row; vectors are `step` apart.
inline void transpose(const float* const* rows, size_t from, float* to, size_t step) {
    typedef Vec<float> V;
    V r[8], a[8], b[8];
    for (int k = 0; k < 8; ++k) r[k] = load(rows[k] + from);
    for (int k = 0; k < 8; k += 2) {
        a[k] = FETA_SHUFFLE(float, r[k], r[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        a[k + 1] = FETA_SHUFFLE(float, r[k], r[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int k = 0; k < 8; k += 4)
        for (int h = 0; h < 2; ++h) {
            b[k + 2 * h] = FETA_SHUFFLE(float, a[k + h], a[k + 2 + h], 0, 1, 8, 9, 4, 5, 12, 13);
            b[k + 2 * h + 1] =
                FETA_SHUFFLE(float, a[k + h], a[k + 2 + h], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int k = 0; k < 4; ++k) {
        store(to + size_t(k) * step, FETA_SHUFFLE(float, b[k], b[k + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        store(to + size_t(k + 4) * step,
              FETA_SHUFFLE(float, b[k], b[k + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
}
inline void transpose(const double* const* rows, size_t from, double* to, size_t step) {
    typedef Vec<double> V;
    V r[4], a[4];
    for (int k = 0; k < 4; ++k) r[k] = load(rows[k] + from);
    for (int k = 0; k < 4; k += 2) {
        a[k] = FETA_SHUFFLE(double, r[k], r[k + 1], 0, 4, 2, 6);
        a[k + 1] = FETA_SHUFFLE(double, r[k], r[k + 1], 1, 5, 3, 7);
    }
    for (int k = 0; k < 2; ++k) {
        store(to + size_t(k) * step, FETA_SHUFFLE(double, a[k], a[k + 2], 0, 1, 4, 5));
        store(to + size_t(k + 2) * step, FETA_SHUFFLE(double, a[k], a[k + 2], 2, 3, 6, 7));
    }
}

// Allocator whose memory starts on a cache line, so that no vector crosses one.
template <class T> struct CacheAligned {
    using value_type = T;
    CacheAligned() = default;
    template <class U> CacheAligned(const CacheAligned<U>&) {}
    T* allocate(size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64)));
    }
    void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
    template <class U> bool operator==(const CacheAligned<U>&) const { return true; }
};
template <class T> using Array = std::vector<T, CacheAligned<T>>;

}  // namespace FETA_ISA
}  // namespace feta

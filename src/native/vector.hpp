// Vector: 32 bytes of numbers at once; the compiler maps it to what the instruction set has.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace feta {
namespace FETA_ISA {

template <class T> struct Pack;
template <> struct Pack<float> {
    typedef float type __attribute__((vector_size(32)));
    typedef int32_t mask __attribute__((vector_size(32)));
    static constexpr int size = 8;
};
template <> struct Pack<double> {
    typedef double type __attribute__((vector_size(32)));
    typedef int64_t mask __attribute__((vector_size(32)));
    static constexpr int size = 4;
};

template <class T> using Vec = typename Pack<T>::type;
template <class T> constexpr int lanes_of = Pack<T>::size;

template <class T> inline Vec<T> load(const T* from) {
    Vec<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
template <class T> inline void store(T* to, Vec<T> v) { std::memcpy(to, &v, sizeof v); }
template <class T> inline Vec<T> spread(T x) { return x - Vec<T>{}; }
template <class T> inline Vec<T> select(typename Pack<T>::mask m, Vec<T> a, Vec<T> b) {
    return m ? a : b;
}
template <class T> inline Vec<T> larger(Vec<T> a, Vec<T> b) { return a > b ? a : b; }
template <class T> inline Vec<T> absolute(Vec<T> a) { return a < Vec<T>{} ? -a : a; }

// Keep a value in a register: the compiler would rather load it again for each use.
template <class V> inline void keep([[maybe_unused]] V& v) {
#if defined(__AVX2__)
    asm("" : "+x"(v));
#endif
}

template <class T> inline int padded(int n) {
    return (n + lanes_of<T> - 1) / lanes_of<T> * lanes_of<T>;
}

}  // namespace FETA_ISA
}  // namespace feta

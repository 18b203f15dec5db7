// Arithmetic: the constants of rounding-error bounds, as in feta/rounding.py.
#pragma once
#include <cmath>
#include <limits>

namespace feta {

// One format: its unit roundoff, and an absolute error that covers underflow and flushing to zero.
template <class T> struct Format;

template <> struct Format<float> {
    static constexpr double unit = 0x1p-24, tiny = 0x1p-125;
};
template <> struct Format<double> {
    static constexpr double unit = 0x1p-53, tiny = 0x1p-1021;
};

// Higham's γ for sums of n products, each term rounded `extra` times more; doubled, which also
// covers the rounding of the bound itself.
inline double gamma(double unit, int n_terms, int extra_roundings) {
    const double relative = (n_terms + 1.0 + extra_roundings) * unit;
    return relative < 0.5 ? 2 * relative / (1 - relative) : std::numeric_limits<double>::infinity();
}

// A factor above 1 that outweighs the rounding of a bound with n terms computed in format T.
template <class T> T upward(int n_terms) {
    return static_cast<T>(1 + (n_terms + 16) * 4 * Format<T>::unit);
}

// Added to absolute weights, so that products with numbers flushed to zero are covered.
constexpr double underflow_floor = 0x1p-100;

// Roundings a term may suffer in the kernel besides its product and sums: weights and table entries
// are rounded to the format first, and a table entry may be a rounded product.
constexpr int kernel_extra_roundings = 4;

}  // namespace feta

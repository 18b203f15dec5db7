// Arithmetic: constants of the rounding-error bounds. feta/rounding.py is the Python counterpart.
#pragma once
#include <cmath>
#include <limits>

namespace feta {

// A number format: its unit roundoff, and an absolute error that covers underflow and flushing to
// zero.
template <class T> struct Format;

template <> struct Format<float> {
    static constexpr double unit = 0x1p-24, tiny = 0x1p-125;
};
template <> struct Format<double> {
    static constexpr double unit = 0x1p-53, tiny = 0x1p-1021;
};

// Twice Higham's γ for a sum of n products, each rounded `extra_roundings` more times. The factor 2
// covers the rounding of the bound itself.
inline double gamma(double unit, int n_terms, int extra_roundings) {
    const double relative = (n_terms + 1.0 + extra_roundings) * unit;
    return relative < 0.5 ? 2 * relative / (1 - relative) : std::numeric_limits<double>::infinity();
}

// Factor above 1 that covers the rounding error of a bound with n terms computed in format T.
template <class T> T upward(int n_terms) {
    return static_cast<T>(1 + (n_terms + 16) * 4 * Format<T>::unit);
}

// Added to absolute weights, so that a bound also covers products with values flushed to zero.
constexpr double underflow_floor = 0x1p-100;

// Roundings of a term in the kernel in addition to its product and sums: weights and table entries
// are first rounded to the format, and a table entry may itself be a rounded product.
constexpr int kernel_extra_roundings = 4;

}  // namespace feta

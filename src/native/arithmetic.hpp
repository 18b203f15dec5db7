// Arithmetic: constants of the rounding-error bounds. feta/rounding.py is the Python counterpart, and
// docs/explanation/rounding.md proves that they suffice. The lemma of each constant is named here.
#pragma once
#include <cmath>
#include <limits>

namespace feta {

// A number format: its unit roundoff, and an absolute error that covers underflow and flushing to
// zero: twice the smallest normal number, for an operation and one of its operands.
template <class T> struct Format;

template <> struct Format<float> {
    static constexpr double unit = 0x1p-24, tiny = 0x1p-125;
};
template <> struct Format<double> {
    static constexpr double unit = 0x1p-53, tiny = 0x1p-1021;
};

// Functions are static: every instruction set has its own copy.

// Twice Higham's γ for a sum of n products, each rounded `extra_roundings` more times. The factor 2
// covers the rounding of the bound itself (lemma 1).
static inline double gamma(double unit, int n_terms, int extra_roundings) {
    const double relative = (n_terms + 1.0 + extra_roundings) * unit;
    return relative < 0.5 ? 2 * relative / (1 - relative) : std::numeric_limits<double>::infinity();
}

// Factor above 1 that covers the rounding error of a bound with n terms computed in format T
// (lemma 2).
template <class T> static inline T upward(int n_terms) {
    return static_cast<T>(1 + (n_terms + 16) * 4 * Format<T>::unit);
}

// Added to absolute weights, so that a bound also covers products with values flushed to zero
// (lemma 3).
constexpr double underflow_floor = 0x1p-100;

// Roundings of a term in the kernel in addition to its product and sums: weights and table entries
// are first rounded to the format, and a table entry may itself be a rounded product.
constexpr int kernel_extra_roundings = 4;

// Factors above 1 for bounds computed in float64 (lemma 2): of a bound that is then rounded to
// float32, of a sum of fewer than 2^20 numbers, and of up to four operations.
constexpr double to_float32 = 1 + 0x1p-20, sum64 = 1 + 0x1p-30, few64 = 1 + 0x1p-50;

// Relative error of a difference of two or three float64 numbers, and of fewer than 16 operations
// in float64 with numbers of at most this size (lemma 12).
constexpr double difference64 = 0x1p-50;

// Added where a float64 number may be flushed to zero: much larger than Format<double>::tiny.
constexpr double floor64 = 0x1p-1000;

// Roundings of the bounds of one node of a tree, in float64, relative to its magnitudes: room for
// 128 operations (lemma 4).
constexpr double tree_rounding = 0x1p-46;

// Roundings of one neuron's bounds in addition to the sum over axes: of a ReLU (lemma 6) and of any
// piecewise-linear activation (lemma 7).
constexpr int relu_roundings = 12, piecewise_roundings = 6;

// Absolute errors of one neuron's bounds in addition to one per axis, in units of `tiny`: sums and
// products flushed to zero (lemmas 6 and 7), and of one layer's sums (lemma 8).
constexpr int activation_flushes = 8, layer_flushes = 4;

// Absolute error of a value of one layer of a single point: per term, product and sum (lemma 8).
constexpr double point_flushes = 5;

// Factor of γ in backward bounds (lemma 9): coefficients, sums, constants and generators.
constexpr int backward_factor = 4;

// Roundings of a linear form at a point in addition to its neurons and axes (lemma 24).
constexpr int form_roundings = 8;

// Relative error of a difference of two float32 numbers, with room for the rounding of its bound
// (lemma 12).
constexpr float difference32 = 0x1p-22f;

// Relative error of a score along a line that is explained by rounding; a larger one halves the
// step, down to this share of the line. No bound depends on these (lemma 14).
constexpr double trace_rounding = 0x1p-42, trace_step = 0x1p-44;

}  // namespace feta

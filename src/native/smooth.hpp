// Smooth: a smooth activation as polynomials with proved errors; kernel_table.py makes the tables,
// and docs/explanation/rounding.md proves them (lemmas 22 and 23).
#pragma once
#include <algorithm>
#include <array>

#include "arithmetic.hpp"
#include "spec.hpp"
#include "vector.hpp"

namespace feta {
namespace FETA_ISA {

// Load four consecutive numbers per lane; vector k holds number k of every lane's row.
inline void load_rows(const float* rows, Mask<float> index, Vec<float>* out) {
    int32_t ids[8];
    std::memcpy(ids, &index, sizeof ids);
#if defined(__AVX2__)
    __m256 pairs[4];
    for (int k = 0; k < 4; ++k)
        pairs[k] =
            _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(rows + 4 * size_t(ids[k]))),
                                 _mm_load_ps(rows + 4 * size_t(ids[k + 4])), 1);
    const __m256 a = _mm256_unpacklo_ps(pairs[0], pairs[1]),
                 b = _mm256_unpackhi_ps(pairs[0], pairs[1]),
                 c = _mm256_unpacklo_ps(pairs[2], pairs[3]),
                 d = _mm256_unpackhi_ps(pairs[2], pairs[3]);
    out[0] = (Vec<float>)_mm256_shuffle_ps(a, c, 0x44);
    out[1] = (Vec<float>)_mm256_shuffle_ps(a, c, 0xee);
    out[2] = (Vec<float>)_mm256_shuffle_ps(b, d, 0x44);
    out[3] = (Vec<float>)_mm256_shuffle_ps(b, d, 0xee);
#else
    for (int k = 0; k < 4; ++k)
        for (int l = 0; l < 8; ++l) out[k][l] = rows[4 * size_t(ids[l]) + size_t(k)];
#endif
}

template <class T> class Smooth {
  public:
    using V = Vec<T>;

    bool used() const { return kind != SmoothSpec::none; }
    bool applies(int neuron) const { return on[size_t(neuron)] != 0; }
    // Absolute errors of the source's function and of `at`, beyond those in proportion to the size.
    T source_error() const { return source; }
    T own_error() const { return own; }
    // No intermediate number of the source is larger.
    T largest_term() const { return largest; }

    void make(const SmoothSpec& from, int neurons) {
        kind = from.kind;
        if (!used()) return;
        constexpr bool single = std::is_same_v<T, float>;
        const std::vector<double>& flat = single ? from.single : from.doubles;
        polynomials.assign(flat.begin(), flat.end());
        windows.assign(from.windows.begin(), from.windows.end());
        on.resize(size_t(neurons));
        for (size_t n = 0; n < on.size(); ++n) on[n] = from.on[from.on.size() > 1 ? n : 0];
        inner = T(from.inner);
        low = T(single ? from.single_low : from.low);
        high = T(single ? from.single_high : from.high);
        per_unit = T(single ? SmoothSpec::single_cells : SmoothSpec::double_cells);
        center = low + T(0.5) / per_unit;
        last = T(int(flat.size() / terms) - 1);
        for (int side = 0; side < 2; ++side) {
            tail_slopes[side] = T(from.tail_slopes[side]);
            tail_intercepts[side] = T(from.tail_intercepts[side]);
        }
        own = T((single ? from.single_error : from.double_error) * to_float32);
        source = T(from.source_error * to_float32);
        largest = T(from.largest_term);
        n_slopes = T(int(from.windows.size() / window_terms));
        reach = T(from.reach * to_float32);
        first_slope = T(from.first_slope);
        slope_step = T(from.slope_step);
        windows_error = T((from.single_error + from.window_error) * to_float32);
    }

    // Return the function at x, per lane; NaN stays NaN.
    V at(V x) const {
        if (kind == SmoothSpec::softsign) return x / (absolute<T>(x) + T(1));
        const V y = inner * x;
        // The order of the arguments matters: NaN becomes a number, so that its cell exists.
        const V inside = larger<T>(smaller<T>(y, broadcast(high)), broadcast(low));
        const V position = smaller<T>((inside - low) * per_unit, broadcast(last));
        const Mask<T> cell = __builtin_convertvector(position, Mask<T>);
        const V cells = __builtin_convertvector(cell, V);
        V out = polynomial(cell, inside - (cells * (1 / per_unit) + center));
        out = select<T>(y >= broadcast(high), tail_slopes[1] * x + tail_intercepts[1], out);
        out = select<T>(y < broadcast(low), tail_slopes[0] * x + tail_intercepts[0], out);
        return select<T>(x == x, out, x);
    }

    // Select a slope, and bound f(x) − slope · x for low ≤ x ≤ high: apart from `relaxation_error`,
    // its extremes are at the ends or in the windows of the slope.
    void relax(V from, V to, V& slope, V& lowest, V& highest) const {
        const V left = at(from), right = at(to), zero{};
        V chord = (right - left) / (to - from);
        chord = select<T>(to > from, chord, zero);
        const V position = chord * (1 / slope_step) + (T(0.5) - first_slope);
        const V clamped = larger<T>(smaller<T>(position, broadcast(n_slopes - T(0.5))), zero);
        const Mask<T> row = __builtin_convertvector(clamped, Mask<T>);
        slope = (__builtin_convertvector(row, V) + first_slope) * slope_step;
        const V at_left = left - slope * from, at_right = right - slope * to;
        lowest = smaller<T>(at_left, at_right);
        highest = larger<T>(at_left, at_right);
        V window[4];
        load_rows(windows.data(), row, window);
        const V before = from - reach, after = to + reach;
        const Mask<T> low_inside = (window[0] >= before) & (window[0] <= after),
                      high_inside = (window[2] >= before) & (window[2] <= after);
        lowest = select<T>(low_inside, smaller<T>(window[1], lowest), lowest);
        highest = select<T>(high_inside, larger<T>(window[3], highest), highest);
    }
    T relaxation_error() const { return windows_error; }

  private:
    static constexpr int terms =
        std::is_same_v<T, float> ? SmoothSpec::single_terms : SmoothSpec::double_terms;
    static constexpr int window_terms = SmoothSpec::window_terms;
    SmoothSpec::Kind kind = SmoothSpec::none;
    T inner = 1, low = 0, high = 0, per_unit = 1, center = 0, last = 0;
    std::array<T, 2> tail_slopes{}, tail_intercepts{};
    T own = 0, source = 0, largest = 0, windows_error = 0, reach = 0;
    T n_slopes = 0, first_slope = 0, slope_step = 1;
    Array<T> polynomials, windows;  // (cells, terms), (slopes, window_terms)
    std::vector<uint8_t> on;        // by neuron

    V polynomial(Mask<T> cell, V rest) const {
        if constexpr (std::is_same_v<T, float>) {
            V c[4];
            load_rows(polynomials.data(), cell, c);
            return ((c[3] * rest + c[2]) * rest + c[1]) * rest + c[0];
        } else {
            V out{};
            for (int k = terms - 1; k >= 0; --k) {
                V c{};
                for (int l = 0; l < lanes_of<T>; ++l)
                    c[l] = polynomials[size_t(cell[l]) * terms + size_t(k)];
                out = out * rest + c;
            }
            return out;
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

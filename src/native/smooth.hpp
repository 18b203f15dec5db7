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
#if defined(__AVX2__)
    // Through memory: extracting eight numbers from a register takes much longer.
    alignas(32) uint32_t at[8];
    _mm256_store_si256((__m256i*)at, _mm256_slli_epi32((__m256i)index, 4));
    asm("" : "+m"(at));
    const char* bytes = reinterpret_cast<const char*>(rows);
    const auto row = [&](int lane) {
        return _mm_load_ps(reinterpret_cast<const float*>(bytes + at[lane]));
    };
    __m256 pairs[4];
    for (int k = 0; k < 4; ++k)
        pairs[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(row(k)), row(k + 4), 1);
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
        for (int l = 0; l < 8; ++l) out[k][l] = rows[4 * size_t(index[l]) + size_t(k)];
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
        first = single ? from.first_single : from.first_double;
        last = T(int(flat.size() / terms) - 1 + first);
        own = T((single ? from.single_error : from.double_error) * to_float32);
        source = T(from.source_error * to_float32);
        largest = T(from.largest_term);
        reach = T(from.reach * to_float32);
        first_slope = T(from.first_slope);
        slope_step = T(from.slope_step);
        steps_per_slope = 1 / slope_step;
        last_slope = T(int(from.windows.size() / window_terms)) - T(0.5);
        windows_error = T((from.single_error + from.window_error) * to_float32);
    }

    // Return the function at x, per lane; NaN stays NaN.
    V at(V x) const { return constants().at(x); }

    // Replace vectors of numbers by the function of each.
    void apply(T* values, int vectors) const {
        const Constants local = constants();  // stores of numbers cannot change a copy
        for (int v = 0; v < vectors; ++v, values += lanes_of<T>)
            store(values, local.at(load(values)));
    }

    // Select a slope, and bound f(x) − slope · x for low ≤ x ≤ high: apart from `relaxation_error`,
    // its extremes are at the ends or in the windows of the slope.
    void relax(V from, V to, V& slope, V& lowest, V& highest) const {
        const Constants local = constants();
        const V left = local.at(from), right = local.at(to), zero{};
        // The order of the arguments matters: NaN becomes a number, so that its row exists.
        const V position = (right - left) / (to - from) * steps_per_slope + (T(0.5) - first_slope);
        const V clamped = smaller<T>(larger<T>(position, zero), broadcast(last_slope));
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
    static constexpr T per_unit =
        std::is_same_v<T, float> ? SmoothSpec::single_cells : SmoothSpec::double_cells;
    T inner = 1, last = 0;
    int first = 0;
    T own = 0, source = 0, largest = 0, windows_error = 0, reach = 0;
    T first_slope = 0, slope_step = 1, steps_per_slope = 1, last_slope = 0;
    Array<T> polynomials, windows;  // (cells, terms), (slopes, window_terms)
    std::vector<uint8_t> on;        // by neuron

    // What a value needs.
    struct Constants {
        bool rational;
        T inner, first, last;
        const T* polynomials;

        V at(V x) const {
            if (rational) return x / (absolute<T>(x) + T(1));
            const V y = inner * x;
            // Cells begin at exact products, so no rounding selects a wrong one. The order of the
            // arguments matters: NaN becomes a number, so that its cell exists; its rest is NaN.
            const V position =
                smaller<T>(larger<T>(y * per_unit, broadcast(first)), broadcast(last));
            const V cell = rounded_down(position);
            const V rest = y - (cell + T(0.5)) * (1 / per_unit);
            return polynomial(__builtin_convertvector(cell - first, Mask<T>), rest);
        }

        static V rounded_down(V x) {
#if defined(__AVX2__)
            if constexpr (std::is_same_v<T, float>) return (V)_mm256_floor_ps((__m256)x);
#endif
            const V toward_zero = __builtin_convertvector(__builtin_convertvector(x, Mask<T>), V);
            return toward_zero - select<T>(toward_zero > x, broadcast(T(1)), V{});
        }

        V polynomial(Mask<T> cell, V rest) const {
            if constexpr (std::is_same_v<T, float>) {
                V c[4];
                load_rows(polynomials, cell, c);
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

    Constants constants() const {
        return {kind == SmoothSpec::softsign, inner, T(first), last, polynomials.data()};
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Backward bounds: a single output is bounded again through the linear relaxations of the
// activations, from the output back to the first layer.
#pragma once
#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> inline void Zonotope<T>::tighten(V signs) {
    if (!single_output() || net.layers.empty()) return;
    const V above = backward(signs), low = load(output_low), high = load(output_high);
    const Mask<T> upper = signs > V{};
    // The order of the arguments matters: a bound that is NaN is discarded.
    store(output_high, select<T>(upper, smaller<T>(above, high), high));
    store(output_low, select<T>(upper, low, larger<T>(-above, low)));
}

// Bound sign · output from above: replace each activation by its line above or below, from the
// output back to the first layer. Return the coefficients of the first layer's neurons, and add to
// the constant. The computed coefficients are used as they are; γ times `error_scale` bounds the
// effect of their rounding. Return also the number of terms of γ.
template <class T>
inline T* Zonotope<T>::relax_backward(V signs, V& constant, V& error_scale, int& terms) {
    const size_t last = net.layers.size() - 1;
    const Layer<T>& output = net.layers[last];
    T *current = coefficients[0].data(), *next = coefficients[1].data();
    for (int l = 0; l < n_active[last]; ++l) {
        const int n = active_ids[last][l];
        store(current + n * lanes, signs * output.rows[n]);
    }
    constant = signs * output.bias[0];
    error_scale = output.norms[0] * largest_after[last] + broadcast(std::abs(output.bias[0]));
    terms = 8;
    for (size_t k = last;; --k) {
        terms += 2 * net.layers[k].inputs + 8;
        activate_backward(k, current, constant, error_scale);
        if (k == 0) return current;
        affine_backward(k, current, next);
        std::swap(current, next);
    }
}

template <class T> inline Vec<T> Zonotope<T>::backward(V signs) {
    V constant, error_scale;
    int terms;
    const T* current = relax_backward(signs, constant, error_scale, terms);
    V center = constant, radius{}, magnitudes{}, generator_sums[8]{};
    const int first_rows = 2 + n_generators;
    for (int l = 0; l < n_active[0]; ++l) {
        const int n = active_ids[0][l];
        const T* x = &first_layer[size_t(n) * first_rows * lanes];
        const V a = load(current + n * lanes), magnitude = absolute<T>(a);
        center += a * load(x);
        radius += magnitude * load(x + (1 + n_generators) * lanes);
        magnitudes += magnitude * absolute<T>(load(x));
        for (int g = 0; g < n_generators && g < 8; ++g)
            generator_sums[g] += a * load(x + (1 + g) * lanes);
        for (int g = 8; g < n_generators; ++g) radius += absolute<T>(a * load(x + (1 + g) * lanes));
    }
    for (int g = 0; g < n_generators && g < 8; ++g) radius += absolute<T>(generator_sums[g]);
    const V rounding = T(gamma(Format<T>::unit, terms, kernel_extra_roundings)) *
                           (error_scale + magnitudes + radius + absolute<T>(center)) *
                           T(backward_factor) +
                       broadcast(T(terms) * T(net.axes + layer_flushes) * T(Format<T>::tiny));
    return center + radius + rounding;
}

template <class T> inline void Zonotope<T>::linear_form(V signs, const T* person_box,
                                                        const T* magnitudes, LinearForm<T>& out) {
    V constant, error_scale;
    int terms;
    const T* current = relax_backward(signs, constant, error_scale, terms);
    const T first =
        T(gamma(Format<T>::unit, net.neurons + net.axes + form_roundings, kernel_extra_roundings) *
          to_float32);
    V boxes{}, evaluation{};
    out.n_active = n_active[0];
    for (int l = 0; l < n_active[0]; ++l) {
        const int n = active_ids[0][l];
        const V a = load(current + n * lanes), size = absolute<T>(a);
        boxes += size * person_box[n];
        evaluation += size * magnitudes[n];
        out.active[size_t(l)] = n;
        store(&out.coefficients[size_t(l) * lanes], a);
    }
    // Lemma 24.
    const V rounding = T(gamma(Format<T>::unit, terms, kernel_extra_roundings)) *
                           (error_scale + evaluation + boxes + absolute<T>(constant)) *
                           T(backward_factor) +
                       (boxes + first * evaluation) * upward<T>(net.neurons) +
                       broadcast(T(terms) * T(net.axes + layer_flushes) * T(Format<T>::tiny));
    store(out.constants, constant + rounding);
}

// Turn the coefficients of a layer's activations into those of the values before them.
template <class T>
inline void Zonotope<T>::activate_backward(size_t k, T* current, V& constant, V& error_scale) {
    const V zero{};
    const V largest_inputs = k ? largest_after[k - 1] : zero;
    for (int l = 0; l < n_active[k]; ++l) {
        const int n = active_ids[k][l];
        const T* relaxation = &relaxations[k][4 * size_t(n) * lanes];
        const V a = load(current + n * lanes);
        const Mask<T> above = a > zero;
        const V relaxed = a * select<T>(above, load(relaxation), load(relaxation + 2 * lanes));
        const V intercept =
            select<T>(above, load(relaxation + lanes), load(relaxation + 3 * lanes));
        constant += a * intercept;
        error_scale += absolute<T>(a * intercept);
        if (k) {
            const Layer<T>& layer = net.layers[k - 1];
            constant += relaxed * layer.bias[n];
            error_scale += absolute<T>(relaxed) *
                           (layer.norms[n] * largest_inputs + broadcast(std::abs(layer.bias[n])));
        }
        store(current + n * lanes, relaxed);
    }
    // Covers coefficients that underflow, of this layer's inputs and of those before its weights.
    error_scale += T(size_t(net.widest) * size_t(net.widest + 2)) * T(Format<T>::tiny) *
                   (largest_inputs + largest_before[k]) * T(1 / Format<T>::unit);
}

// Turn the coefficients of the outputs of layer k − 1 into those of its inputs.
template <class T> inline void Zonotope<T>::affine_backward(size_t k, const T* current, T* next) {
    constexpr int tile = 8;
    const Layer<T>& layer = net.layers[k - 1];
    const size_t width = size_t(padded<T>(layer.inputs));
    const std::vector<int32_t>&from = active_ids[k], &to = active_ids[k - 1];
    for (int first = 0; first < n_active[k - 1]; first += tile) {
        size_t into[tile];  // the last index may repeat
        for (int t = 0; t < tile; ++t)
            into[t] = size_t(to[std::min(first + t, n_active[k - 1] - 1)]);
        V sums[tile]{};
        for (int l = 0; l < n_active[k]; ++l) {
            const size_t o = size_t(from[l]);
            const V a = load(current + o * lanes);
            const T* row = &layer.rows[o * width];
            for (int t = 0; t < tile; ++t) sums[t] += row[into[t]] * a;
        }
        for (int t = 0; t < tile; ++t) store(next + into[t] * lanes, sums[t]);
    }
}

}  // namespace FETA_ISA
}  // namespace feta

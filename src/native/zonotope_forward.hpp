// Forward bounds: the zonotope is propagated from the inputs through the layers to the outputs.
#pragma once
#include "zonotope_inputs.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> template <bool Backward>
inline void Zonotope<T>::bound_nodes(const T* person, const T* person_box, const int32_t* ids,
                                     int count) {
    load_nodes(person, person_box, ids, count);
    for (size_t k = 0; k < net.layers.size(); ++k) {
        activate<false, Backward>(k, nullptr);
        affine<false>(k);
    }
    bound_single_output();
}

template <class T> inline void Zonotope<T>::bound_roots(const T* people, const T* boxes,
                                                        const T* magnitudes,
                                                        const T* cancelled_magnitude,
                                                        LargestValues<T>& largest_values) {
    load_roots(people, boxes, magnitudes, cancelled_magnitude);
    for (size_t k = 0; k < net.layers.size(); ++k) {
        activate<true, false>(k, &largest_values);
        affine<true>(k);
    }
    for (int o = 0; o < net.outputs(); ++o) {  // overflow: no bound
        T* e = block.at(o, 2 + n_generators);
        store(e, select<T>(overflowed, broadcast(std::numeric_limits<T>::infinity()), load(e)));
    }
    bound_single_output();
}

// Unroll the loop over generators for the usual numbers of generators.
template <class T> template <bool Root, bool Backward>
inline void Zonotope<T>::activate(size_t k, LargestValues<T>* largest_values) {
    switch (n_generators) {
        case 1: return activate_generators<Root, Backward, 1>(k, largest_values);
        case 2: return activate_generators<Root, Backward, 2>(k, largest_values);
        case 3: return activate_generators<Root, Backward, 3>(k, largest_values);
        case 4: return activate_generators<Root, Backward, 4>(k, largest_values);
        case 5: return activate_generators<Root, Backward, 5>(k, largest_values);
        default: return activate_generators<Root, Backward, 0>(k, largest_values);
    }
}

template <class T> template <bool Root, bool Backward, int G>
void Zonotope<T>::activate_generators(size_t k, LargestValues<T>* largest_values) {
    const Layer<T>& layer = net.layers[k];
    const Activation<T>& activation = layer.activation;
    // Lemma 6: the roundings of one neuron's bounds, and the numbers flushed to zero.
    const V rounding =
        broadcast(T(gamma(Format<T>::unit, net.axes + relu_roundings, kernel_extra_roundings)));
    const V zero{}, one = broadcast(T(1)), inflate = broadcast(inflation),
                    smallest_normal = broadcast(std::numeric_limits<T>::min());
    const V layer_rounding = broadcast(kernel_rounding[k].rounding * inflation),
            tiny = broadcast(T((net.axes + activation_flushes) * Format<T>::tiny));
    const int generator_count = G ? G : n_generators;
    const bool relu = activation.relu, identity = activation.identity;
    V sum = zero, sums[n_tracked]{}, largest = zero, largest_input = zero;
    if constexpr (Root) {
        largest_values->before[k].resize(size_t(layer.inputs) * lanes);
        largest_values->after[k].resize(size_t(layer.inputs) * lanes);
    }
    block.clear_active();
    all_zero = relu ? ~Mask<T>{} : Mask<T>{};
    for (int n = 0; n < layer.inputs; ++n) {
        T* x = block.at(n, 0);
        T* box = x + (1 + generator_count) * lanes;
        T* relaxation = &relaxations[k][4 * size_t(n) * lanes];
        V c = load(x), b = load(box), generator_sum = zero;
        if (Backward && k == 0)
            std::copy_n(x, (2 + generator_count) * lanes,
                        &first_layer[size_t(n) * (2 + generator_count) * lanes]);
        V slope_above = one, intercept_above = zero, slope_below = one, intercept_below = zero;
        for (int g = 1; g <= generator_count; ++g)
            generator_sum += absolute<T>(load(x + g * lanes));
        const V before = absolute<T>(c) + generator_sum + b,
                radius = generator_sum + b + (rounding * before + tiny);
        const V low = c - radius, high = c + radius;
        if constexpr (Root)
            store(&largest_values->before[k][size_t(n) * lanes],
                  larger<T>(absolute<T>(low), absolute<T>(high)));
        V magnitude;
        bool is_active = true;
        if (relu) {
            // relu(x) lies in λx + [0, μ] for any λ in [0, 1], with μ = max(−λl, (1 − λ)u).
            // With the chord's λ, both are equal up to rounding. If x has one sign, λ is 0 or 1
            // and μ is 0. The code has no branches, because the sign is hard to predict.
            const V u = larger<T>(high, zero), l = smaller<T>(low, zero);
            const V slope = u / (u - l + smallest_normal), half = slope * l * T(-0.5);
            c = slope * c + half;
            b = slope * b + half + rounding * before;
            store(x, c);
            for (int g = 1; g <= generator_count; ++g)
                store(x + g * lanes, slope * load(x + g * lanes));
            if constexpr (Root || Backward) {
                generator_sum = slope * generator_sum;
                magnitude = absolute<T>(c) + generator_sum + b;
                slope_above = slope;
                intercept_above = half + half + rounding * before + tiny;
                slope_below = select<T>(u > -l, one, zero);
            } else
                magnitude = slope * before * T(2);  // at least |center| + generators + box
            // At the roots, the errors of neurons that are zero are propagated, too.
            const Mask<T> zeros = high <= zero;
            all_zero &= zeros;
            if constexpr (!Root) is_active = !all<T>(zeros);
        } else {
            if (!identity && (!activation.smooth.used() || activation.smooth.applies(n)))
                activate_piecewise(activation, n, x, c, b, generator_sum, radius, slope_above,
                                   intercept_above, intercept_below),
                    slope_below = slope_above;
            magnitude = absolute<T>(c) + generator_sum + b;
        }
        if constexpr (Backward) {
            store(relaxation, slope_above);
            store(relaxation + lanes, intercept_above);
            store(relaxation + 2 * lanes, slope_below);
            store(relaxation + 3 * lanes, intercept_below);
        }
        b += layer_rounding * magnitude + tiny;
        store(box, b);
        sum += b;
        if constexpr (Backward) {
            largest = larger<T>(largest, magnitude);
            largest_input = larger<T>(largest_input, before + radius);
        }
        block.append_active_if(is_active, n);
        if constexpr (Root) {
            store(&largest_values->after[k][size_t(n) * lanes], magnitude * inflate);
            for (int d = 0; d < n_tracked; ++d) {
                const LayerRounding& layer_constants = tracked_rounding[d][k];
                T* at = box + (1 + d) * lanes;
                V e = load(at);
                if (activation.rounds || activation.steepest[n] != 1) {
                    V value = activation.steepest[n] *
                                  (load(&largest_values->before[k][size_t(n) * lanes]) + e) +
                              activation.offset[n];
                    e = e * activation.steepest[n];
                    if (activation.smooth.used()) smooth_error(activation.smooth, d, value, e);
                    if (activation.rounds)
                        e += layer_constants.activation * value +
                             T(point_flushes) * layer_constants.tiny;
                }
                e = (e + layer_constants.rounding * (magnitude * inflate + T(2) * e) +
                     layer_constants.tiny) *
                    inflate;
                store(at, e);
                sums[d] += e;
            }
        }
    }
    box_sum = sum;
    for (int d = 0; d < n_tracked; ++d) error_sums[d] = sums[d];
    if constexpr (Backward) {
        largest_after[k] = largest * inflate;
        largest_before[k] = largest_input * inflate;
        n_active[k] = block.n_active();
        for (int l = 0; l < n_active[k]; ++l) active_ids[k][l] = block.active(l);
    }
}

// The largest rounded number and the further error of a smooth function, in a tracked arithmetic.
template <class T>
inline void Zonotope<T>::smooth_error(const Smooth<T>& smooth, int arithmetic, V& value, V& error) {
    if (arithmetic != 0) {
        error += smooth.own_error();
        return;
    }
    error += smooth.source_error();
    if (smooth.largest_term() > 0) {
        const V largest = broadcast(smooth.largest_term());
        value = select<T>(value > largest, largest, value);  // NaN remains
    }
}

// Relax any piecewise-linear f: with the chord's slope λ, f(x) − λx is extreme at an end or a
// break. A smooth one has a slope close to the chord's, and windows instead of breaks.
template <class T>
inline void Zonotope<T>::activate_piecewise(const Activation<T>& activation, int n, T* x, V& c,
                                            V& b, V& generator_sum, V radius, V& slope_out,
                                            V& intercept_above, V& intercept_below) {
    const V low = c - radius, high = c + radius, zero{};
    V slope, lowest, highest;
    T error = 0;
    if (activation.smooth.used()) {
        activation.smooth.relax(low, high, slope, lowest, highest);
        error = activation.smooth.relaxation_error();
    } else {
        slope = (activation.at(high, n) - activation.at(low, n)) / (high - low);
        slope = select<T>(high > low, slope, zero);
        lowest = highest = activation.at(low, n) - slope * low;
        const auto include = [&](V at, Mask<T> inside) {
            const V residual = activation.at(at, n) - slope * at;
            lowest = select<T>(inside, smaller<T>(lowest, residual), lowest);
            highest = select<T>(inside, larger<T>(highest, residual), highest);
        };
        include(high, high >= low);
        for (int p = 0; p + 1 < activation.pieces; ++p) {
            const V at = broadcast(activation.breaks[size_t(p) * activation.width + n]);
            include(at, (at > low) & (at < high));
        }
    }
    const V magnitude = (activation.steepest[n] + absolute<T>(slope)) * (absolute<T>(c) + radius) +
                        activation.offset[n];
    const V rounding = piecewise_rounding * magnitude +
                       (error + T((net.axes + activation_flushes) * Format<T>::tiny));
    slope_out = slope;
    intercept_above = highest + rounding;
    intercept_below = lowest - rounding;
    c = slope * c + (lowest + highest) / 2;
    b = (absolute<T>(slope) * b + (highest - lowest) / 2 + rounding) *
        upward<T>(piecewise_roundings);
    generator_sum = absolute<T>(slope) * generator_sum * inflation;
    store(x, c);
    for (int g = 1; g <= n_generators; ++g) store(x + g * lanes, slope * load(x + g * lanes));
}

template <class T> template <bool Root> inline void Zonotope<T>::affine(size_t k) {
    const Layer<T>& layer = net.layers[k];
    block.multiply(layer, 1 + n_generators, Root ? 1 + n_tracked : 1);
    const T layer_inflation = upward<T>(layer.inputs);
    const int box_row = 1 + n_generators;
    // Covers weights that underflow in the format.
    const V floors = T(underflow_floor) * box_sum;
    for (int o = 0; o < layer.outputs; ++o) {
        T* x = block.at(o, 0);
        T* box = x + box_row * lanes;
        store(x, load(x) + layer.bias[o]);
        store(box, (load(box) + floors + kernel_rounding[k].bias[o]) * layer_inflation);
        if constexpr (Root)
            for (int d = 0; d < n_tracked; ++d) {
                T* at = box + (1 + d) * lanes;
                const V e = (load(at) + T(underflow_floor) * error_sums[d] +
                             tracked_rounding[d][k].bias[o]) *
                            layer_inflation;
                if (d == 0) overflowed |= ~(e < broadcast(tracked_rounding[d][k].overflow));
                store(at, e);
            }
    }
}

// Compute the bounds of a single output from the zonotope.
template <class T> inline void Zonotope<T>::bound_single_output() {
    if (net.outputs() != 1) return;
    V radius = load(block.at(0, 1 + n_generators));
    const V center = load(block.at(0, 0));
    for (int g = 1; g <= n_generators; ++g) radius += absolute<T>(load(block.at(0, g)));
    // Lemma 10: eight units of the center cover the rounding of both ends.
    radius = (radius + T(8 * Format<T>::unit) * absolute<T>(center) +
              T((net.axes + layer_flushes) * Format<T>::tiny)) *
             inflation;
    store(output_low, center - radius);
    store(output_high, center + radius);
}

}  // namespace FETA_ISA
}  // namespace feta

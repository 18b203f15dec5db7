// Zonotope: bounds of the neurons over nodes of the lattice, center ± Σ generators ± box, one node
// per lane.
//
// The bounds are propagated forward through the layers. A single output can then be bounded again
// backward, by the linear relaxation of each activation. One generator per axis keeps the
// dependence on that axis; the box covers everything else, including the kernel's rounding errors.
// So the bounds hold for exact real arithmetic.
#pragma once
#include "block.hpp"

namespace feta {
namespace FETA_ISA {

// An arithmetic whose rounding errors are propagated through the layers; see `gamma`.
struct TrackedArithmetic {
    double unit = 0, tiny = 0, huge = 0;
    int extra_roundings = 0, first_terms = 0;
};

constexpr int n_tracked = 2;  // the source's and the kernel's

// Largest absolute values before and after each activation; (layers, neurons, lanes).
template <class T> struct LargestValues {
    std::vector<Array<T>> before, after;
};

template <class T> class Zonotope {
  public:
    static constexpr int lanes = lanes_of<T>;
    using V = Vec<T>;

    explicit Zonotope(const Network<T>& network)
        : net(network), block(network.widest, network.axes + 2 + n_tracked),
          rows(size_t(2 * lanes) * network.width), base(3 * size_t(network.width)),
          differs(network.axes), inflation(upward<T>(network.axes + 2)) {
        for (const Layer<T>& layer : net.layers) {
            relaxations.emplace_back(4 * size_t(layer.inputs) * lanes);
            active_ids.emplace_back(size_t(layer.inputs));
        }
        n_active.assign(net.layers.size(), 0);
        largest_after.assign(net.layers.size(), V{});
        first_layer.resize(size_t(net.width) * (network.axes + 2) * lanes);
        for (auto& row : coefficients) row.resize(size_t(network.widest) * lanes);
        for (const Layer<T>& layer : net.layers)
            kernel_rounding.push_back(
                rounding_of(layer, {Format<T>::unit, 0.0, HUGE_VAL, kernel_extra_roundings, 0}));
    }

    // Set the `n_tracked` arithmetics whose errors `bound_roots` propagates. The first is the
    // source's; only its overflow is checked.
    void track(const TrackedArithmetic* arithmetics) {
        for (int d = 0; d < n_tracked; ++d) {
            tracked[d] = arithmetics[d];
            tracked_rounding[d].clear();
            for (const Layer<T>& layer : net.layers)
                tracked_rounding[d].push_back(rounding_of(layer, arithmetics[d]));
        }
    }

    int generators() const { return n_generators; }
    const T* center(int output) const { return block.at(output, 0); }
    const T* generator(int g, int output) const { return block.at(output, 1 + g); }
    const T* box(int output) const { return block.at(output, 1 + n_generators); }
    const T* error(int arithmetic, int output) const {
        return block.at(output, 2 + n_generators + arithmetic);
    }

    // Bounds of a single output.
    bool single_output() const { return net.outputs() == 1; }
    const T* low() const { return output_low; }
    const T* high() const { return output_high; }

    // Return whether the last activation is 0 everywhere in a node; then the outputs are exactly
    // the biases.
    bool constant(int lane) const { return all_zero[lane] != 0; }

    // Return the likely side of a single output per lane: 1 below the threshold, −1 above.
    V sides(double threshold) const {
        const V center = (load(output_low) + load(output_high)) / 2, one = broadcast(T(1));
        return select<T>(center < broadcast(T(threshold)), one, -one);
    }

    // Bound the outputs over nodes of one person's lattice; ids are (count, axes). With `Backward`,
    // also store what `tighten` needs.
    template <bool Backward>
    void bound_nodes(const T* person, const T* person_box, const int32_t* ids, int count) {
        load_nodes(person, person_box, ids, count);
        for (size_t k = 0; k < net.layers.size(); ++k) {
            activate<false, Backward>(k, nullptr);
            affine<false>(k);
        }
        bound_single_output();
    }

    // Bound the outputs over the whole lattices of several people, with the errors of the tracked
    // arithmetics and the largest values. people, boxes and magnitudes are (lanes, width).
    void bound_roots(const T* people, const T* boxes, const T* magnitudes,
                     const T* cancelled_magnitude, LargestValues<T>& largest_values) {
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

    // Bound a single output of the nodes again, backward: more expensive, and tighter for large
    // nodes. Each lane is bounded on one side: from above if its sign is 1, from below if it is −1.
    void tighten(V signs) {
        if (!single_output() || net.layers.empty()) return;
        const V above = backward(signs), low = load(output_low), high = load(output_high);
        const Mask<T> upper = signs > V{};
        // The order of the arguments matters: a bound that is NaN is discarded.
        store(output_high, select<T>(upper, smaller<T>(above, high), high));
        store(output_low, select<T>(upper, low, larger<T>(-above, low)));
    }

  private:
    const Network<T>& net;
    Block<T> block;
    Array<T> rows, base;           // (2 · lanes, width): centers and boxes; (3, width): common part
    std::vector<uint8_t> differs;  // by axis: whether the nodes differ there
    T inflation;                   // covers the rounding of sums over axes
    int n_generators = 0;

    // Constants of the rounding errors of one arithmetic in one layer, rounded up.
    struct LayerRounding {
        T rounding = 0, activation = 0, tiny = 0, overflow = 0;
        Array<T> bias;  // (outputs): γ · |bias|, and underflow
    };
    std::vector<LayerRounding> kernel_rounding, tracked_rounding[n_tracked];  // by layer
    TrackedArithmetic tracked[n_tracked];
    V box_sum{}, error_sums[n_tracked]{};  // over the inputs of the current layer

    // For the backward pass, by layer: slope and intercept of each activation's line above and line
    // below, the active neurons, and the largest value after the activation.
    std::vector<Array<T>> relaxations;  // (inputs, 4, lanes)
    std::vector<std::vector<int32_t>> active_ids;
    std::vector<int32_t> n_active;
    std::vector<V, CacheAligned<V>> largest_after;
    Array<T> first_layer;      // (neurons, rows, lanes): input of the first activation
    Array<T> coefficients[2];  // (neurons, lanes)
    alignas(64) T output_low[lanes], output_high[lanes];
    Mask<T> overflowed{}, all_zero{};

    static LayerRounding rounding_of(const Layer<T>& layer, const TrackedArithmetic& arithmetic) {
        constexpr double outward = 1 + 0x1p-20;
        const double g = gamma(arithmetic.unit, layer.inputs, arithmetic.extra_roundings),
                     tiny = std::max(arithmetic.tiny, Format<T>::tiny);
        LayerRounding out;
        out.rounding = T(g * outward);
        out.activation = T(gamma(arithmetic.unit, 1, arithmetic.extra_roundings) * outward);
        out.tiny = T(tiny);
        out.overflow = T(g * arithmetic.huge);
        for (int o = 0; o < layer.outputs; ++o)
            out.bias.push_back(
                T((g * layer.bias_magnitudes64[o] + 5.0 * (layer.inputs + 1) * tiny) * outward));
        return out;
    }

    T first_rounding() const {
        return T(gamma(Format<T>::unit, net.axes + 2, kernel_extra_roundings));
    }

    void load_nodes(const T* person, const T* person_box, const int32_t* ids, int count) {
        const int width = net.width, axes = net.axes;
        T *center = base.data(), *magnitude = center + width, *box = magnitude + width;
        std::copy_n(person, width, center);
        std::copy_n(person_box, width, box);
        for (int n = 0; n < width; n += lanes) store(magnitude + n, absolute<T>(load(center + n)));
        n_generators = 0;
        const T* pointers[lanes];
        for (int a = 0; a < axes; ++a) {
            const AxisTree<T>& tree = net.trees[a];
            bool same = true, varies = tree.real;
            for (int l = 0; l < count; ++l) {
                const int32_t id = ids[size_t(l) * axes + a];
                same &= id == ids[a];
                varies |= tree.count(id) > 1;
            }
            differs[a] = !same;
            if (same) {
                const size_t at = size_t(ids[a]) * width;
                for (int n = 0; n < width; n += lanes) {
                    const V c = load(&tree.center[at + n]);
                    store(center + n, load(center + n) + c);
                    store(magnitude + n, load(magnitude + n) + absolute<T>(c));
                    store(box + n, load(box + n) + load(&tree.rest[at + n]));
                }
            }
            if (!varies) continue;
            T* to = block.at(0, 1 + n_generators++);
            if (same)
                for (int n = 0; n < net.neurons; ++n)
                    store(to + n * block.neuron_stride(),
                          broadcast(tree.generator[size_t(ids[a]) * width + n]));
            else {
                for (int l = 0; l < lanes; ++l)
                    pointers[l] =
                        &tree.generator[size_t(ids[size_t(l < count ? l : 0) * axes + a]) * width];
                for (int n = 0; n < width; n += lanes)
                    transpose(pointers, n, to + n * block.neuron_stride(), block.neuron_stride());
            }
        }
        const T rounding = first_rounding();
        for (int l = 0; l < lanes; ++l) {
            const int32_t* node_ids = ids + size_t(l < count ? l : 0) * axes;
            T *to = &rows[size_t(l) * width], *to_box = &rows[size_t(lanes + l) * width];
            for (int n = 0; n < width; n += lanes) {
                V m = load(center + n), s = load(magnitude + n), w = load(box + n);
                for (int a = 0; a < axes; ++a)
                    if (differs[a]) {
                        const size_t at = size_t(node_ids[a]) * width + n;
                        const V c = load(&net.trees[a].center[at]);
                        m += c;
                        s += absolute<T>(c);
                        w += load(&net.trees[a].rest[at]);
                    }
                store(to + n, m);
                store(to_box + n, (w + rounding * s) * inflation);
            }
        }
        fill_row(rows.data(), 0);
        fill_row(&rows[size_t(lanes) * width], 1 + n_generators);
    }

    // Transpose `lanes` rows of neurons into one row of the block.
    void fill_row(const T* from, int row) {
        const T* pointers[lanes];
        for (int l = 0; l < lanes; ++l) pointers[l] = from + size_t(l) * net.width;
        for (int n = 0; n < net.width; n += lanes)
            transpose(pointers, n, block.at(n, row), block.neuron_stride());
    }

    void load_roots(const T* people, const T* boxes, const T* magnitudes,
                    const T* cancelled_magnitude) {
        const TrackedArithmetic* arithmetics = tracked;
        n_generators = net.axes;
        fill_row(people, 0);
        fill_row(boxes, 1 + n_generators);
        fill_row(magnitudes, 2 + n_generators);
        const T rounding = first_rounding();
        overflowed = Mask<T>{};
        T first_relative[n_tracked], first_tiny[n_tracked];
        for (int d = 0; d < n_tracked; ++d) {
            const double g = gamma(arithmetics[d].unit, arithmetics[d].first_terms,
                                   arithmetics[d].extra_roundings);
            first_relative[d] = T((g + gamma(Format<double>::unit, arithmetics[0].first_terms,
                                             kernel_extra_roundings)) *
                                  (1 + 0x1p-20));
            first_tiny[d] = T(5.0 * (arithmetics[0].first_terms + 1) *
                              std::max(arithmetics[d].tiny, Format<T>::tiny));
        }
        for (int n = 0; n < net.neurons; ++n) {
            V c = load(block.at(n, 0)), magnitude = absolute<T>(c),
              box = load(block.at(n, 1 + n_generators));
            for (int a = 0; a < net.axes; ++a) {
                const AxisTree<T>& tree = net.trees[a];
                const V center = broadcast(tree.center[n]);
                c += center;
                magnitude += absolute<T>(center);
                box += broadcast(tree.rest[n]);
                store(block.at(n, 1 + a), broadcast(tree.generator[n]));
            }
            store(block.at(n, 0), c);
            store(block.at(n, 1 + n_generators), (box + rounding * magnitude) * inflation);
            const V terms = load(block.at(n, 2 + n_generators)) + broadcast(cancelled_magnitude[n]);
            overflowed |= ~(terms < broadcast(T(arithmetics[0].huge)));
            for (int d = 0; d < n_tracked; ++d)
                store(block.at(n, 2 + n_generators + d),
                      (terms * first_relative[d] + first_tiny[d]) * inflation);
        }
    }

    // Unroll the loop over generators for the usual numbers of generators.
    template <bool Root, bool Backward> void activate(size_t k, LargestValues<T>* largest_values) {
        switch (n_generators) {
            case 1: return activate_generators<Root, Backward, 1>(k, largest_values);
            case 2: return activate_generators<Root, Backward, 2>(k, largest_values);
            case 3: return activate_generators<Root, Backward, 3>(k, largest_values);
            case 4: return activate_generators<Root, Backward, 4>(k, largest_values);
            case 5: return activate_generators<Root, Backward, 5>(k, largest_values);
            default: return activate_generators<Root, Backward, 0>(k, largest_values);
        }
    }

    template <bool Root, bool Backward, int G>
    __attribute__((noinline)) void activate_generators(size_t k, LargestValues<T>* largest_values) {
        const Layer<T>& layer = net.layers[k];
        const Activation<T>& activation = layer.activation;
        // Covers the dozen roundings of one neuron's bounds, each at most relative to its
        // magnitude.
        const V rounding =
            broadcast(T(gamma(Format<T>::unit, net.axes + 12, kernel_extra_roundings)));
        const V zero{}, one = broadcast(T(1)), inflate = broadcast(inflation),
                        smallest_normal = broadcast(std::numeric_limits<T>::min());
        const V layer_rounding = broadcast(kernel_rounding[k].rounding * inflation),
                tiny = broadcast(T(2 * Format<T>::tiny));
        const int generator_count = G ? G : n_generators;
        const bool relu = activation.relu, identity = activation.identity;
        V sum = zero, sums[n_tracked]{}, largest = zero;
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
                    radius = generator_sum + b + rounding * before;
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
                if (!identity)
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
            if constexpr (Backward) largest = larger<T>(largest, magnitude);
            block.append_active_if(is_active, n);
            if constexpr (Root) {
                store(&largest_values->after[k][size_t(n) * lanes], magnitude * inflate);
                for (int d = 0; d < n_tracked; ++d) {
                    const LayerRounding& layer_constants = tracked_rounding[d][k];
                    T* at = box + (1 + d) * lanes;
                    V e = load(at);
                    if (activation.rounds || activation.steepest[n] != 1) {
                        const V value =
                            activation.steepest[n] *
                                (load(&largest_values->before[k][size_t(n) * lanes]) + e) +
                            activation.offset[n];
                        e = e * activation.steepest[n];
                        if (activation.rounds)
                            e += layer_constants.activation * value + T(5) * layer_constants.tiny;
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
            n_active[k] = block.n_active();
            for (int l = 0; l < n_active[k]; ++l) active_ids[k][l] = block.active(l);
        }
    }

    // Relax any piecewise-linear f: with the chord's slope λ, f(x) − λx is extreme at an end or a
    // break.
    void activate_piecewise(const Activation<T>& activation, int n, T* x, V& c, V& b,
                            V& generator_sum, V radius, V& slope_out, V& intercept_above,
                            V& intercept_below) {
        const V low = c - radius, high = c + radius, zero{};
        V slope = (activation.at(high, n) - activation.at(low, n)) / (high - low);
        slope = select<T>(high > low, slope, zero);
        V lowest = activation.at(low, n) - slope * low, highest = lowest;
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
        const V magnitude =
            (activation.steepest[n] + absolute<T>(slope)) * (absolute<T>(c) + radius) +
            activation.offset[n];
        const V rounding =
            T(gamma(Format<T>::unit, net.axes + 6, kernel_extra_roundings)) * magnitude +
            T(8 * Format<T>::tiny);
        slope_out = slope;
        intercept_above = highest + rounding;
        intercept_below = lowest - rounding;
        c = slope * c + (lowest + highest) / 2;
        b = (absolute<T>(slope) * b + (highest - lowest) / 2 + rounding) * upward<T>(6);
        generator_sum = absolute<T>(slope) * generator_sum * inflation;
        store(x, c);
        for (int g = 1; g <= n_generators; ++g) store(x + g * lanes, slope * load(x + g * lanes));
    }

    // Compute the bounds of a single output from the zonotope.
    void bound_single_output() {
        if (net.outputs() != 1) return;
        V radius = load(block.at(0, 1 + n_generators));
        const V center = load(block.at(0, 0));
        for (int g = 1; g <= n_generators; ++g) radius += absolute<T>(load(block.at(0, g)));
        radius = (radius + T(8 * Format<T>::unit) * absolute<T>(center)) * inflation;
        store(output_low, center - radius);
        store(output_high, center + radius);
    }

    // Turn the coefficients of a layer's activations into those of the values before them.
    void activate_backward(size_t k, T* current, V& constant, V& error_scale) {
        const V zero{};
        const V largest_before = k ? largest_after[k - 1] : zero;
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
                error_scale += absolute<T>(relaxed) * (layer.norms[n] * largest_before +
                                                       broadcast(std::abs(layer.bias[n])));
            }
            store(current + n * lanes, relaxed);
        }
        // Covers coefficients that underflow.
        error_scale += T(size_t(net.widest) * (net.widest + 2)) * T(Format<T>::tiny) *
                       largest_before * T(1 / Format<T>::unit);
    }

    // Turn the coefficients of the outputs of layer k − 1 into those of its inputs.
    void affine_backward(size_t k, const T* current, T* next) {
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

    // Bound sign · output from above: replace each activation by its line above or below, from the
    // output back to the first layer. The computed coefficients are used as they are; γ times
    // `error_scale` bounds the effect of their rounding.
    V backward(V signs) {
        const size_t last = net.layers.size() - 1;
        const Layer<T>& output = net.layers[last];
        T *current = coefficients[0].data(), *next = coefficients[1].data();
        for (int l = 0; l < n_active[last]; ++l) {
            const int n = active_ids[last][l];
            store(current + n * lanes, signs * output.rows[n]);
        }
        V constant = signs * output.bias[0],
          error_scale = output.norms[0] * largest_after[last] + broadcast(std::abs(output.bias[0]));
        int terms = 8;
        for (size_t k = last;; --k) {
            terms += 2 * net.layers[k].inputs + 8;
            activate_backward(k, current, constant, error_scale);
            if (k == 0) break;
            affine_backward(k, current, next);
            std::swap(current, next);
        }
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
            for (int g = 8; g < n_generators; ++g)
                radius += absolute<T>(a * load(x + (1 + g) * lanes));
        }
        for (int g = 0; g < n_generators && g < 8; ++g) radius += absolute<T>(generator_sums[g]);
        const V rounding = T(gamma(Format<T>::unit, terms, kernel_extra_roundings)) *
                               (error_scale + magnitudes + radius + absolute<T>(center)) * T(4) +
                           broadcast(T(terms) * T(Format<T>::tiny));
        return center + radius + rounding;
    }

    template <bool Root> void affine(size_t k) {
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
};

}  // namespace FETA_ISA
}  // namespace feta

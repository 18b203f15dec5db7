// Zonotope: what the neurons can be over a node of the lattice: center ± Σ generators ± box.
//
// Pushed forward through the layers; a single output can then be bounded again backward, by the
// lines that each activation stays between. A node a lane. One generator an axis keeps what moves together together; everything else, the
// kernel's own rounding errors included, goes into the box. So the bounds hold for exact real arithmetic.
#pragma once
#include "block.hpp"

namespace feta {
namespace FETA_ISA {

// An arithmetic whose rounding errors are followed through the layers.
struct TrackedArithmetic {
    double unit = 0, tiny = 0, huge = 0;
    int extra = 0, first_terms = 0;
};

constexpr int n_tracked = 2;

// How far values get before and after each activation, (layers, neurons, lanes).
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
            kernel_constants.push_back(
                constants(layer, {Format<T>::unit, 0.0, HUGE_VAL, kernel_extra_roundings, 0}));
    }

    // Follow these arithmetics' errors from the roots.
    void track(const TrackedArithmetic* arithmetics) {
        for (int d = 0; d < n_tracked; ++d) {
            tracked[d] = arithmetics[d];
            tracked_rounding[d].clear();
            for (const Layer<T>& layer : net.layers)
                tracked_rounding[d].push_back(constants(layer, arithmetics[d]));
        }
    }

    int generators() const { return n_generators; }
    const T* center(int output) const { return block.at(output, 0); }
    const T* generator(int g, int output) const { return block.at(output, 1 + g); }
    const T* box(int output) const { return block.at(output, 1 + n_generators); }
    const T* error(int arithmetic, int output) const {
        return block.at(output, 2 + n_generators + arithmetic);
    }

    // A single output's bounds.
    bool single_output() const { return net.outputs() == 1; }
    const T* low() const { return output_low; }
    const T* high() const { return output_high; }

    // Whether the last activation gives 0 everywhere in a node: the outputs are the biases then, exactly.
    bool constant(int lane) const { return all_zero[lane] != 0; }

    // On which side of a number a single output seems to stay: 1 below it, −1 above.
    V sides(double threshold) const {
        const V center = (load(output_low) + load(output_high)) / 2, one = broadcast(T(1));
        return select<T>(center < broadcast(T(threshold)), one, -one);
    }

    // Bound the outputs over nodes of one person's lattice; ids are (count, axes).
    // With `Back`, the way back to them is noted.
    template <bool Backward>
    void bound_nodes(const T* person, const T* person_box, const int32_t* ids, int count) {
        load_nodes(person, person_box, ids, count);
        for (size_t k = 0; k < net.layers.size(); ++k) {
            activate<false, Backward>(k, nullptr);
            affine<false>(k);
        }
        bound_single_output();
    }

    // Bound the outputs over the whole lattices of several people; people and boxes are rows of
    // `width`, sizes too. The errors of the arithmetics followed come along, and the reach is noted.
    void bound_roots(const T* people, const T* boxes, const T* magnitudes,
                     const T* cancelled_magnitude, LargestValues<T>& largest_values) {
        load_roots(people, boxes, magnitudes, cancelled_magnitude);
        for (size_t k = 0; k < net.layers.size(); ++k) {
            activate<true, false>(k, &largest_values);
            affine<true>(k);
        }
        for (int o = 0; o < net.outputs(); ++o) {  // what may overflow has no bound
            T* e = block.at(o, 2 + n_generators);
            store(e, select<T>(overflowed, broadcast(std::numeric_limits<T>::infinity()), load(e)));
        }
        bound_single_output();
    }

    // Bound a single output of the nodes again, backward: dearer, and tighter where nodes are large.
    // Each lane on one side only: from above where its sign is 1, from below where it is −1.
    void tighten(V signs) {
        if (!single_output() || net.layers.empty()) return;
        const V above = backward(signs), low = load(output_low), high = load(output_high);
        const Mask<T> upper = signs > V{};
        // In this order: a bound that overflowed is not taken.
        store(output_high, select<T>(upper, smaller<T>(above, high), high));
        store(output_low, select<T>(upper, low, larger<T>(-above, low)));
    }

  private:
    const Network<T>& net;
    Block<T> block;
    Array<T> rows, base;
    std::vector<uint8_t> differs;
    T inflation;
    int n_generators = 0;

    // What one arithmetic's rounding adds in one layer, rounded up.
    struct LayerRounding {
        T rounding = 0, activation = 0, tiny = 0, overflow = 0;
        Array<T> bias;  // (outputs): γ times the bias, and underflow
    };
    std::vector<LayerRounding> kernel_constants, tracked_rounding[n_tracked];  // by layer
    TrackedArithmetic tracked[n_tracked];
    V box_sum{}, error_sums[n_tracked]{};

    // For the way back, by layer: each activation's lines above and below (slope and intercept), the
    // neurons that are not zero, and how large their values after the activation get.
    std::vector<Array<T>> relaxations;  // (inputs, 4, lanes)
    std::vector<std::vector<int32_t>> active_ids;
    std::vector<int32_t> n_active;
    std::vector<V, CacheAligned<V>> largest_after;
    Array<T> first_layer;      // the first layer's rows, (neurons, rows, lanes)
    Array<T> coefficients[2];  // (neurons, lanes)
    alignas(64) T output_low[lanes], output_high[lanes];
    Mask<T> overflowed{}, all_zero{};

    static LayerRounding constants(const Layer<T>& layer, const TrackedArithmetic& arithmetic) {
        constexpr double outward = 1 + 0x1p-20;
        const double g = gamma(arithmetic.unit, layer.inputs, arithmetic.extra),
                     tiny = std::max(arithmetic.tiny, Format<T>::tiny);
        LayerRounding out;
        out.rounding = T(g * outward);
        out.activation = T(gamma(arithmetic.unit, 1, arithmetic.extra) * outward);
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

    // One row of lanes from `lanes` rows of neurons.
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
            const double g =
                gamma(arithmetics[d].unit, arithmetics[d].first_terms, arithmetics[d].extra);
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

    // The loop over generators is unrolled for the usual numbers of them.
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
        // The dozen roundings of one neuron's bounds, each relative to no more than its size.
        const V rounding =
            broadcast(T(gamma(Format<T>::unit, net.axes + 12, kernel_extra_roundings)));
        const V zero{}, one = broadcast(T(1)), inflate = broadcast(inflation),
                        smallest_normal = broadcast(std::numeric_limits<T>::min());
        const V layer_rounding = broadcast(kernel_constants[k].rounding * inflation),
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
                // relu(x) lies within λx + [0, μ] for any λ in [0, 1], with μ = max(−λl, (1 − λ)u); with the
                // chord's λ both are equal but for rounding. Without branches: which neurons bend is hard to
                // foretell, and where x is of one sign, λ comes out as 0 or 1 and μ as 0.
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
                    magnitude = slope * before *
                                T(2);  // at least that of center, generators and box together
                // At the roots the errors of neurons that are zero are followed on, too.
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
                    const LayerRounding& constants = tracked_rounding[d][k];
                    T* at = box + (1 + d) * lanes;
                    V e = load(at);
                    if (activation.rounds || activation.steepest[n] != 1) {
                        const V value =
                            activation.steepest[n] *
                                (load(&largest_values->before[k][size_t(n) * lanes]) + e) +
                            activation.offset[n];
                        e = e * activation.steepest[n];
                        if (activation.rounds)
                            e += constants.activation * value + T(5) * constants.tiny;
                    }
                    e = (e + constants.rounding * (magnitude * inflate + T(2) * e) +
                         constants.tiny) *
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

    // Any piecewise-linear f: with the chord's slope λ, f(x) − λx is extreme at an end or a break.
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
        const V off = T(gamma(Format<T>::unit, net.axes + 6, kernel_extra_roundings)) * magnitude +
                      T(8 * Format<T>::tiny);
        slope_out = slope;
        intercept_above = highest + off;
        intercept_below = lowest - off;
        c = slope * c + (lowest + highest) / 2;
        b = (absolute<T>(slope) * b + (highest - lowest) / 2 + off) * upward<T>(6);
        generator_sum = absolute<T>(slope) * generator_sum * inflation;
        store(x, c);
        for (int g = 1; g <= n_generators; ++g) store(x + g * lanes, slope * load(x + g * lanes));
    }

    // A single output's bounds as the zonotope has them.
    void bound_single_output() {
        if (net.outputs() != 1) return;
        V box = load(block.at(0, 1 + n_generators));
        const V center = load(block.at(0, 0));
        for (int g = 1; g <= n_generators; ++g) box += absolute<T>(load(block.at(0, g)));
        box = (box + T(8 * Format<T>::unit) * absolute<T>(center)) * inflation;
        store(output_low, center - box);
        store(output_high, center + box);
    }

    // Coefficients of a layer's activations become those of the values before them.
    void activate_backward(size_t k, T* now, V& rest, V& off) {
        const V zero{};
        const V before = k ? largest_after[k - 1] : zero;
        for (int l = 0; l < n_active[k]; ++l) {
            const int n = active_ids[k][l];
            const T* relaxation = &relaxations[k][4 * size_t(n) * lanes];
            const V a = load(now + n * lanes);
            const Mask<T> above = a > zero;
            const V relaxed = a * select<T>(above, load(relaxation), load(relaxation + 2 * lanes));
            const V intercept =
                select<T>(above, load(relaxation + lanes), load(relaxation + 3 * lanes));
            rest += a * intercept;
            off += absolute<T>(a * intercept);
            if (k) {
                const Layer<T>& layer = net.layers[k - 1];
                rest += relaxed * layer.bias[n];
                off += absolute<T>(relaxed) *
                       (layer.norms[n] * before + broadcast(std::abs(layer.bias[n])));
            }
            store(now + n * lanes, relaxed);
        }
        // Coefficients too small for the format.
        off += T(size_t(net.widest) * (net.widest + 2)) * T(Format<T>::tiny) * before *
               T(1 / Format<T>::unit);
    }

    // Coefficients of layer k − 1's outputs become those of its inputs.
    void affine_backward(size_t k, const T* now, T* next) {
        constexpr int tile = 8;
        const Layer<T>& layer = net.layers[k - 1];
        const size_t width = size_t(padded<T>(layer.inputs));
        const std::vector<int32_t>&from = active_ids[k], &to = active_ids[k - 1];
        for (int first = 0; first < n_active[k - 1]; first += tile) {
            size_t into[tile];  // the last ones may repeat
            for (int t = 0; t < tile; ++t)
                into[t] = size_t(to[std::min(first + t, n_active[k - 1] - 1)]);
            V sums[tile]{};
            for (int l = 0; l < n_active[k]; ++l) {
                const size_t o = size_t(from[l]);
                const V a = load(now + o * lanes);
                const T* row = &layer.rows[o * width];
                for (int t = 0; t < tile; ++t) sums[t] += row[into[t]] * a;
            }
            for (int t = 0; t < tile; ++t) store(next + into[t] * lanes, sums[t]);
        }
    }

    // Bound sign · output from above: replace each activation by its line above or below, from the output
    // back to the first layer. The computed coefficients are taken as they are; what rounding them may
    // have cost is `off` times γ.
    V backward(V signs) {
        const size_t last = net.layers.size() - 1;
        const Layer<T>& output = net.layers[last];
        T *now = coefficients[0].data(), *next = coefficients[1].data();
        for (int l = 0; l < n_active[last]; ++l) {
            const int n = active_ids[last][l];
            store(now + n * lanes, signs * output.rows[n]);
        }
        V rest = signs * output.bias[0],
          off = output.norms[0] * largest_after[last] + broadcast(std::abs(output.bias[0]));
        int terms = 8;
        for (size_t k = last;; --k) {
            terms += 2 * net.layers[k].inputs + 8;
            activate_backward(k, now, rest, off);
            if (k == 0) break;
            affine_backward(k, now, next);
            std::swap(now, next);
        }
        V center = rest, box{}, magnitudes{}, generator_sums[8]{};
        const int rows = 2 + n_generators;
        for (int l = 0; l < n_active[0]; ++l) {
            const int n = active_ids[0][l];
            const T* x = &first_layer[size_t(n) * rows * lanes];
            const V a = load(now + n * lanes), magnitude = absolute<T>(a);
            center += a * load(x);
            box += magnitude * load(x + (1 + n_generators) * lanes);
            magnitudes += magnitude * absolute<T>(load(x));
            for (int g = 0; g < n_generators && g < 8; ++g)
                generator_sums[g] += a * load(x + (1 + g) * lanes);
            for (int g = 8; g < n_generators; ++g)
                box += absolute<T>(a * load(x + (1 + g) * lanes));
        }
        for (int g = 0; g < n_generators && g < 8; ++g) box += absolute<T>(generator_sums[g]);
        const V rounding = T(gamma(Format<T>::unit, terms, kernel_extra_roundings)) *
                               (off + magnitudes + box + absolute<T>(center)) * T(4) +
                           broadcast(T(terms) * T(Format<T>::tiny));
        return center + box + rounding;
    }

    template <bool Root> void affine(size_t k) {
        const Layer<T>& layer = net.layers[k];
        block.multiply(layer, 1 + n_generators, Root ? 1 + n_tracked : 1);
        const T layer_inflation = upward<T>(layer.inputs);
        const int box_row = 1 + n_generators;
        // The floor outweighs weights that the format cannot hold.
        const V floors = T(underflow_floor) * box_sum;
        for (int o = 0; o < layer.outputs; ++o) {
            T* x = block.at(o, 0);
            T* box = x + box_row * lanes;
            store(x, load(x) + layer.bias[o]);
            store(box, (load(box) + floors + kernel_constants[k].bias[o]) * layer_inflation);
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

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
struct Doubt {
    double unit = 0, tiny = 0, huge = 0;
    int extra = 0, first_terms = 0;
};

constexpr int most_doubts = 2;

// How far values get before and after each activation, (layers, neurons, lanes).
template <class T> struct Reach {
    std::vector<Array<T>> before, after;
};

template <class T> class Zonotope {
  public:
    static constexpr int lanes = lanes_of<T>;
    using V = Vec<T>;

    explicit Zonotope(const Network<T>& network)
        : net(network), block(network.widest, network.axes + 2 + most_doubts),
          rows(size_t(2 * lanes) * network.width), base(3 * size_t(network.width)),
          varies(network.axes), up(upward<T>(network.axes + 2)) {
        for (const Layer<T>& layer : net.layers) {
            lines.emplace_back(4 * size_t(layer.inputs) * lanes);
            living.emplace_back(size_t(layer.inputs));
        }
        n_living.assign(net.layers.size(), 0);
        reached.assign(net.layers.size(), V{});
        firsts.resize(size_t(net.width) * (network.axes + 2) * lanes);
        for (auto& one : coefficients) one.resize(size_t(network.widest) * lanes);
        for (const Layer<T>& layer : net.layers)
            own.push_back(constants(layer, {Format<T>::unit, 0.0, HUGE_VAL, kernel_extra, 0}));
    }

    // Follow these arithmetics' errors from the roots.
    void follow(const Doubt* doubts) {
        for (int d = 0; d < most_doubts; ++d) {
            followed[d] = doubts[d];
            errors[d].clear();
            for (const Layer<T>& layer : net.layers)
                errors[d].push_back(constants(layer, doubts[d]));
        }
    }

    int generators() const { return n_generators; }
    const T* center(int output) const { return block.at(output, 0); }
    const T* generator(int g, int output) const { return block.at(output, 1 + g); }
    const T* box(int output) const { return block.at(output, 1 + n_generators); }
    const T* error(int doubt, int output) const {
        return block.at(output, 2 + n_generators + doubt);
    }

    // A single output's bounds.
    bool single() const { return net.outputs() == 1; }
    const T* low() const { return lows; }
    const T* high() const { return highs; }

    // Whether the last activation gives 0 everywhere in a node: the outputs are the biases then, exactly.
    bool constant(int lane) const { return quiet[lane] != 0; }

    // On which side of a number a single output seems to stay: 1 below it, −1 above.
    V sides(double number) const {
        const V middle = (load(lows) + load(highs)) / 2, one = spread(T(1));
        return select<T>(middle < spread(T(number)), one, -one);
    }

    // Bound the outputs over nodes of one person's lattice; ids are (count, axes).
    // With `Back`, the way back to them is noted.
    template <bool Back>
    void nodes(const T* person, const T* person_box, const int32_t* ids, int count) {
        first(person, person_box, ids, count);
        for (size_t k = 0; k < net.layers.size(); ++k) {
            activate<false, Back>(k, nullptr);
            affine<false>(k);
        }
        settle();
    }

    // Bound the outputs over the whole lattices of several people; people and boxes are rows of
    // `width`, sizes too. The errors of the arithmetics followed come along, and the reach is noted.
    void roots(const T* people, const T* boxes, const T* sizes, const T* folded, Reach<T>& reach) {
        first_roots(people, boxes, sizes, folded);
        for (size_t k = 0; k < net.layers.size(); ++k) {
            activate<true, false>(k, &reach);
            affine<true>(k);
        }
        for (int o = 0; o < net.outputs(); ++o) {  // what may overflow has no bound
            T* e = block.at(o, 2 + n_generators);
            store(e, select<T>(lost, spread(std::numeric_limits<T>::infinity()), load(e)));
        }
        settle();
    }

    // Bound a single output of the nodes again, backward: dearer, and tighter where nodes are large.
    // Each lane on one side only: from above where its sign is 1, from below where it is −1.
    void tighten(V signs) {
        if (!single() || net.layers.empty()) return;
        const V above = backward(signs), low = load(lows), high = load(highs);
        const Mask<T> upper = signs > V{};
        // In this order: a bound that overflowed is not taken.
        store(highs, select<T>(upper, smaller<T>(above, high), high));
        store(lows, select<T>(upper, low, larger<T>(-above, low)));
    }

  private:
    const Network<T>& net;
    Block<T> block;
    Array<T> rows, base;
    std::vector<uint8_t> varies;
    T up;
    int n_generators = 0;

    // What one arithmetic's rounding adds in one layer, rounded up.
    struct Constants {
        T rounding = 0, bending = 0, tiny = 0, overflow = 0;
        Array<T> bias;  // (outputs): γ times the bias, and underflow
    };
    std::vector<Constants> own, errors[most_doubts];  // by layer
    Doubt followed[most_doubts];
    V total{}, totals[most_doubts]{};

    // For the way back, by layer: each activation's lines above and below (slope and intercept), the
    // neurons that are not zero, and how large their values after the activation get.
    std::vector<Array<T>> lines;  // (inputs, 4, lanes)
    std::vector<std::vector<int32_t>> living;
    std::vector<int32_t> n_living;
    std::vector<V, OnLine<V>> reached;
    Array<T> firsts;           // the first layer's rows, (neurons, rows, lanes)
    Array<T> coefficients[2];  // (neurons, lanes)
    alignas(64) T lows[lanes], highs[lanes];
    Mask<T> lost{}, quiet{};

    static Constants constants(const Layer<T>& layer, const Doubt& doubt) {
        constexpr double outward = 1 + 0x1p-20;
        const double g = gamma(doubt.unit, layer.inputs, doubt.extra),
                     tiny = std::max(doubt.tiny, Format<T>::tiny);
        Constants out;
        out.rounding = T(g * outward);
        out.bending = T(gamma(doubt.unit, 1, doubt.extra) * outward);
        out.tiny = T(tiny);
        out.overflow = T(g * doubt.huge);
        for (int o = 0; o < layer.outputs; ++o)
            out.bias.push_back(
                T((g * layer.exact_bias[o] + 5.0 * (layer.inputs + 1) * tiny) * outward));
        return out;
    }

    T first_rounding() const { return T(gamma(Format<T>::unit, net.axes + 2, kernel_extra)); }

    void first(const T* person, const T* person_box, const int32_t* ids, int count) {
        const int width = net.width, axes = net.axes;
        T *middle = base.data(), *size = middle + width, *wide = size + width;
        std::copy_n(person, width, middle);
        std::copy_n(person_box, width, wide);
        for (int n = 0; n < width; n += lanes) store(size + n, absolute<T>(load(middle + n)));
        n_generators = 0;
        const T* pointers[lanes];
        for (int a = 0; a < axes; ++a) {
            const AxisTree<T>& tree = net.trees[a];
            bool same = true, moves = tree.real;
            for (int l = 0; l < count; ++l) {
                const int32_t id = ids[size_t(l) * axes + a];
                same &= id == ids[a];
                moves |= tree.count(id) > 1;
            }
            varies[a] = !same;
            if (same) {
                const size_t at = size_t(ids[a]) * width;
                for (int n = 0; n < width; n += lanes) {
                    const V c = load(&tree.center[at + n]);
                    store(middle + n, load(middle + n) + c);
                    store(size + n, load(size + n) + absolute<T>(c));
                    store(wide + n, load(wide + n) + load(&tree.rest[at + n]));
                }
            }
            if (!moves) continue;
            T* to = block.at(0, 1 + n_generators++);
            if (same)
                for (int n = 0; n < net.neurons; ++n)
                    store(to + n * block.step(),
                          spread(tree.generator[size_t(ids[a]) * width + n]));
            else {
                for (int l = 0; l < lanes; ++l)
                    pointers[l] =
                        &tree.generator[size_t(ids[size_t(l < count ? l : 0) * axes + a]) * width];
                for (int n = 0; n < width; n += lanes)
                    transpose(pointers, n, to + n * block.step(), block.step());
            }
        }
        const T rounding_first = first_rounding();
        for (int l = 0; l < lanes; ++l) {
            const int32_t* mine = ids + size_t(l < count ? l : 0) * axes;
            T *to = &rows[size_t(l) * width], *to_box = &rows[size_t(lanes + l) * width];
            for (int n = 0; n < width; n += lanes) {
                V m = load(middle + n), s = load(size + n), w = load(wide + n);
                for (int a = 0; a < axes; ++a)
                    if (varies[a]) {
                        const size_t at = size_t(mine[a]) * width + n;
                        const V c = load(&net.trees[a].center[at]);
                        m += c;
                        s += absolute<T>(c);
                        w += load(&net.trees[a].rest[at]);
                    }
                store(to + n, m);
                store(to_box + n, (w + rounding_first * s) * up);
            }
        }
        fill(rows.data(), 0);
        fill(&rows[size_t(lanes) * width], 1 + n_generators);
    }

    // One row of lanes from `lanes` rows of neurons.
    void fill(const T* from, int row) {
        const T* pointers[lanes];
        for (int l = 0; l < lanes; ++l) pointers[l] = from + size_t(l) * net.width;
        for (int n = 0; n < net.width; n += lanes)
            transpose(pointers, n, block.at(n, row), block.step());
    }

    void first_roots(const T* people, const T* boxes, const T* sizes, const T* folded) {
        const Doubt* doubts = followed;
        n_generators = net.axes;
        fill(people, 0);
        fill(boxes, 1 + n_generators);
        fill(sizes, 2 + n_generators);
        const T rounding_first = first_rounding();
        lost = Mask<T>{};
        T first_of[most_doubts], tiny_of[most_doubts];
        for (int d = 0; d < most_doubts; ++d) {
            const double g = gamma(doubts[d].unit, doubts[d].first_terms, doubts[d].extra);
            first_of[d] = T((g + gamma(Format<double>::unit, doubts[0].first_terms, kernel_extra)) *
                            (1 + 0x1p-20));
            tiny_of[d] =
                T(5.0 * (doubts[0].first_terms + 1) * std::max(doubts[d].tiny, Format<T>::tiny));
        }
        for (int n = 0; n < net.neurons; ++n) {
            V c = load(block.at(n, 0)), size = absolute<T>(c),
              wide = load(block.at(n, 1 + n_generators));
            for (int a = 0; a < net.axes; ++a) {
                const AxisTree<T>& tree = net.trees[a];
                const V center = spread(tree.center[n]);
                c += center;
                size += absolute<T>(center);
                wide += spread(tree.rest[n]);
                store(block.at(n, 1 + a), spread(tree.generator[n]));
            }
            store(block.at(n, 0), c);
            store(block.at(n, 1 + n_generators), (wide + rounding_first * size) * up);
            const V terms = load(block.at(n, 2 + n_generators)) + spread(folded[n]);
            lost |= ~(terms < spread(T(doubts[0].huge)));
            for (int d = 0; d < most_doubts; ++d)
                store(block.at(n, 2 + n_generators + d), (terms * first_of[d] + tiny_of[d]) * up);
        }
    }

    // The loop over generators is unrolled for the usual numbers of them.
    template <bool Root, bool Back> void activate(size_t k, Reach<T>* reach) {
        switch (n_generators) {
            case 1: return activate_of<Root, Back, 1>(k, reach);
            case 2: return activate_of<Root, Back, 2>(k, reach);
            case 3: return activate_of<Root, Back, 3>(k, reach);
            case 4: return activate_of<Root, Back, 4>(k, reach);
            case 5: return activate_of<Root, Back, 5>(k, reach);
            default: return activate_of<Root, Back, 0>(k, reach);
        }
    }

    template <bool Root, bool Back, int G>
    __attribute__((noinline)) void activate_of(size_t k, Reach<T>* reach) {
        const Layer<T>& layer = net.layers[k];
        const Activation<T>& bend = layer.activation;
        // The dozen roundings of one neuron's bounds, each relative to no more than its size.
        const V slack = spread(T(gamma(Format<T>::unit, net.axes + 12, kernel_extra)));
        const V zero{}, one = spread(T(1)), out = spread(up),
                        least = spread(std::numeric_limits<T>::min());
        const V round = spread(own[k].rounding * up), tiny = spread(T(2 * Format<T>::tiny));
        const int many = G ? G : n_generators;
        const bool relu = bend.relu, identity = bend.identity;
        V sum = zero, sums[most_doubts]{}, largest = zero;
        if constexpr (Root) {
            reach->before[k].resize(size_t(layer.inputs) * lanes);
            reach->after[k].resize(size_t(layer.inputs) * lanes);
        }
        block.begin_alive();
        quiet = relu ? ~Mask<T>{} : Mask<T>{};
        for (int n = 0; n < layer.inputs; ++n) {
            T* x = block.at(n, 0);
            T* wide = x + (1 + many) * lanes;
            T* line = &lines[k][4 * size_t(n) * lanes];
            V c = load(x), b = load(wide), moves = zero;
            if (Back && k == 0)
                std::copy_n(x, (2 + many) * lanes, &firsts[size_t(n) * (2 + many) * lanes]);
            V slope_above = one, rise = zero, slope_below = one, fall = zero;
            for (int g = 1; g <= many; ++g) moves += absolute<T>(load(x + g * lanes));
            const V before = absolute<T>(c) + moves + b, radius = moves + b + slack * before;
            const V low = c - radius, high = c + radius;
            if constexpr (Root)
                store(&reach->before[k][size_t(n) * lanes],
                      larger<T>(absolute<T>(low), absolute<T>(high)));
            V size;
            bool lives = true;
            if (relu) {
                // relu(x) lies within λx + [0, μ] for any λ in [0, 1], with μ = max(−λl, (1 − λ)u); with the
                // chord's λ both are equal but for rounding. Without branches: which neurons bend is hard to
                // foretell, and where x is of one sign, λ comes out as 0 or 1 and μ as 0.
                const V u = larger<T>(high, zero), l = smaller<T>(low, zero);
                const V slope = u / (u - l + least), half = slope * l * T(-0.5);
                c = slope * c + half;
                b = slope * b + half + slack * before;
                store(x, c);
                for (int g = 1; g <= many; ++g) store(x + g * lanes, slope * load(x + g * lanes));
                if constexpr (Root || Back) {
                    moves = slope * moves;
                    size = absolute<T>(c) + moves + b;
                    slope_above = slope;
                    rise = half + half + slack * before + tiny;
                    slope_below = select<T>(u > -l, one, zero);
                } else
                    size = slope * before *
                           T(2);  // at least that of center, generators and box together
                // At the roots the errors of neurons that are zero are followed on, too.
                const Mask<T> zeros = high <= zero;
                quiet &= zeros;
                if constexpr (!Root) lives = !all<T>(zeros);
            } else {
                if (!identity)
                    bend_one(bend, n, x, c, b, moves, radius, slope_above, rise, fall),
                        slope_below = slope_above;
                size = absolute<T>(c) + moves + b;
            }
            if constexpr (Back) {
                store(line, slope_above);
                store(line + lanes, rise);
                store(line + 2 * lanes, slope_below);
                store(line + 3 * lanes, fall);
            }
            b += round * size + tiny;
            store(wide, b);
            sum += b;
            if constexpr (Back) largest = larger<T>(largest, size);
            block.keep_alive_if(lives, n);
            if constexpr (Root) {
                store(&reach->after[k][size_t(n) * lanes], size * out);
                for (int d = 0; d < most_doubts; ++d) {
                    const Constants& layer_of = errors[d][k];
                    T* at = wide + (1 + d) * lanes;
                    V e = load(at);
                    if (bend.rounds || bend.steepest[n] != 1) {
                        const V value =
                            bend.steepest[n] * (load(&reach->before[k][size_t(n) * lanes]) + e) +
                            bend.offset[n];
                        e = e * bend.steepest[n];
                        if (bend.rounds) e += layer_of.bending * value + T(5) * layer_of.tiny;
                    }
                    e = (e + layer_of.rounding * (size * out + T(2) * e) + layer_of.tiny) * out;
                    store(at, e);
                    sums[d] += e;
                }
            }
        }
        total = sum;
        for (int d = 0; d < most_doubts; ++d) totals[d] = sums[d];
        if constexpr (Back) {
            reached[k] = largest * out;
            n_living[k] = block.n_living();
            for (int l = 0; l < n_living[k]; ++l) living[k][l] = block.living(l);
        }
    }

    // Any piecewise-linear f: with the chord's slope λ, f(x) − λx is extreme at an end or a break.
    void bend_one(const Activation<T>& bend, int n, T* x, V& c, V& b, V& moves, V radius,
                  V& slope_of, V& rise, V& fall) {
        const V low = c - radius, high = c + radius, zero{};
        V slope = (bend.at(high, n) - bend.at(low, n)) / (high - low);
        slope = select<T>(high > low, slope, zero);
        V least = bend.at(low, n) - slope * low, most = least;
        const auto look = [&](V at, Mask<T> inside) {
            const V rest = bend.at(at, n) - slope * at;
            least = select<T>(inside, smaller<T>(least, rest), least);
            most = select<T>(inside, larger<T>(most, rest), most);
        };
        look(high, high >= low);
        for (int p = 0; p + 1 < bend.pieces; ++p) {
            const V at = spread(bend.breaks[size_t(p) * bend.width + n]);
            look(at, (at > low) & (at < high));
        }
        const V size =
            (bend.steepest[n] + absolute<T>(slope)) * (absolute<T>(c) + radius) + bend.offset[n];
        const V off =
            T(gamma(Format<T>::unit, net.axes + 6, kernel_extra)) * size + T(8 * Format<T>::tiny);
        slope_of = slope;
        rise = most + off;
        fall = least - off;
        c = slope * c + (least + most) / 2;
        b = (absolute<T>(slope) * b + (most - least) / 2 + off) * upward<T>(6);
        moves = absolute<T>(slope) * moves * up;
        store(x, c);
        for (int g = 1; g <= n_generators; ++g) store(x + g * lanes, slope * load(x + g * lanes));
    }

    // A single output's bounds as the zonotope has them.
    void settle() {
        if (net.outputs() != 1) return;
        V wide = load(block.at(0, 1 + n_generators));
        const V center = load(block.at(0, 0));
        for (int g = 1; g <= n_generators; ++g) wide += absolute<T>(load(block.at(0, g)));
        wide = (wide + T(8 * Format<T>::unit) * absolute<T>(center)) * up;
        store(lows, center - wide);
        store(highs, center + wide);
    }

    // Coefficients of a layer's activations become those of the values before them.
    void bend_back(size_t k, T* now, V& rest, V& off) {
        const V zero{};
        const V before = k ? reached[k - 1] : zero;
        for (int l = 0; l < n_living[k]; ++l) {
            const int n = living[k][l];
            const T* line = &lines[k][4 * size_t(n) * lanes];
            const V a = load(now + n * lanes);
            const Mask<T> up_side = a > zero;
            const V bent = a * select<T>(up_side, load(line), load(line + 2 * lanes));
            const V shift = select<T>(up_side, load(line + lanes), load(line + 3 * lanes));
            rest += a * shift;
            off += absolute<T>(a * shift);
            if (k) {
                const Layer<T>& layer = net.layers[k - 1];
                rest += bent * layer.bias[n];
                off +=
                    absolute<T>(bent) * (layer.norms[n] * before + spread(std::abs(layer.bias[n])));
            }
            store(now + n * lanes, bent);
        }
        // Coefficients too small for the format.
        off += T(size_t(net.widest) * (net.widest + 2)) * T(Format<T>::tiny) * before *
               T(1 / Format<T>::unit);
    }

    // Coefficients of layer k − 1's outputs become those of its inputs.
    void affine_back(size_t k, const T* now, T* next) {
        constexpr int together = 8;
        const Layer<T>& layer = net.layers[k - 1];
        const size_t width = size_t(padded<T>(layer.inputs));
        const std::vector<int32_t>&from = living[k], &to = living[k - 1];
        for (int first = 0; first < n_living[k - 1]; first += together) {
            size_t into[together];  // the last ones may repeat
            for (int t = 0; t < together; ++t)
                into[t] = size_t(to[std::min(first + t, n_living[k - 1] - 1)]);
            V sums[together]{};
            for (int l = 0; l < n_living[k]; ++l) {
                const size_t o = size_t(from[l]);
                const V a = load(now + o * lanes);
                const T* row = &layer.rows[o * width];
                for (int t = 0; t < together; ++t) sums[t] += row[into[t]] * a;
            }
            for (int t = 0; t < together; ++t) store(next + into[t] * lanes, sums[t]);
        }
    }

    // Bound sign · output from above: replace each activation by its line above or below, from the output
    // back to the first layer. The computed coefficients are taken as they are; what rounding them may
    // have cost is `off` times γ.
    V backward(V signs) {
        const size_t last = net.layers.size() - 1;
        const Layer<T>& output = net.layers[last];
        T *now = coefficients[0].data(), *next = coefficients[1].data();
        for (int l = 0; l < n_living[last]; ++l) {
            const int n = living[last][l];
            store(now + n * lanes, signs * output.rows[n]);
        }
        V rest = signs * output.bias[0],
          off = output.norms[0] * reached[last] + spread(std::abs(output.bias[0]));
        int terms = 8;
        for (size_t k = last;; --k) {
            terms += 2 * net.layers[k].inputs + 8;
            bend_back(k, now, rest, off);
            if (k == 0) break;
            affine_back(k, now, next);
            std::swap(now, next);
        }
        V middle = rest, wide{}, sizes{}, moves[8]{};
        const int rows = 2 + n_generators;
        for (int l = 0; l < n_living[0]; ++l) {
            const int n = living[0][l];
            const T* x = &firsts[size_t(n) * rows * lanes];
            const V a = load(now + n * lanes), size = absolute<T>(a);
            middle += a * load(x);
            wide += size * load(x + (1 + n_generators) * lanes);
            sizes += size * absolute<T>(load(x));
            for (int g = 0; g < n_generators && g < 8; ++g)
                moves[g] += a * load(x + (1 + g) * lanes);
            for (int g = 8; g < n_generators; ++g)
                wide += absolute<T>(a * load(x + (1 + g) * lanes));
        }
        for (int g = 0; g < n_generators && g < 8; ++g) wide += absolute<T>(moves[g]);
        const V slack = T(gamma(Format<T>::unit, terms, kernel_extra)) *
                            (off + sizes + wide + absolute<T>(middle)) * T(4) +
                        spread(T(terms) * T(Format<T>::tiny));
        return middle + wide + slack;
    }

    template <bool Root> void affine(size_t k) {
        const Layer<T>& layer = net.layers[k];
        block.multiply(layer, 1 + n_generators, Root ? 1 + most_doubts : 1);
        const T lift = upward<T>(layer.inputs);
        const int box_row = 1 + n_generators;
        // The floor outweighs weights that the format cannot hold.
        const V floors = T(floor_size) * total;
        for (int o = 0; o < layer.outputs; ++o) {
            T* x = block.at(o, 0);
            T* wide = x + box_row * lanes;
            store(x, load(x) + layer.bias[o]);
            store(wide, (load(wide) + floors + own[k].bias[o]) * lift);
            if constexpr (Root)
                for (int d = 0; d < most_doubts; ++d) {
                    T* at = wide + (1 + d) * lanes;
                    const V e =
                        (load(at) + T(floor_size) * totals[d] + errors[d][k].bias[o]) * lift;
                    if (d == 0) lost |= ~(e < spread(errors[d][k].overflow));
                    store(at, e);
                }
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Zonotope: what the neurons can be over a node of the lattice: center ± Σ generators ± box.
//
// One generator an axis keeps what moves together together; everything else, the kernel's own
// rounding errors included, goes into the box. So the bounds hold for exact real arithmetic.
#pragma once
#include "network.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> struct AxisTree {
    int values = 0, nodes = 0;
    std::vector<T> terms;                     // (values, width)
    std::vector<T> by_neuron;                 // (width, values), values in the order of the leaves
    std::vector<T> center, generator, rest;   // (nodes, width)
    std::vector<T> weight;                    // (nodes)
    std::vector<int32_t> order, begin, end, left, right;

    void make(const AxisSpec& from, int neurons) {
        const int width = padded<T>(neurons);
        values = from.values;
        nodes = int(from.begin.size());
        const auto spreaded = [&](const std::vector<double>& flat, int rows) {
            std::vector<T> out(size_t(rows) * width, T(0));
            for (int r = 0; r < rows; ++r)
                for (int n = 0; n < neurons; ++n) out[size_t(r) * width + n] = T(flat[size_t(r) * neurons + n]);
            return out;
        };
        terms = spreaded(from.terms, values);
        center = spreaded(from.center, nodes);
        generator = spreaded(from.generator, nodes);
        rest.assign(size_t(nodes) * width, T(0));
        for (int r = 0; r < nodes; ++r)
            for (int n = 0; n < neurons; ++n) {
                const size_t f = size_t(r) * neurons + n;
                const double size = std::abs(from.center[f]) + std::abs(from.generator[f]);
                // Center and generator are rounded to the format; twice that is on the safe side.
                const double out = (from.rest[f] + 4 * Format<T>::unit * size) * (1 + 0x1p-20);
                rest[size_t(r) * width + n] = T(out + 2 * Format<T>::tiny);
            }
        weight.assign(from.weight.begin(), from.weight.end());
        order = from.order;
        begin = from.begin;
        end = from.end;
        left = from.left;
        right = from.right;
        by_neuron.assign(size_t(width) * size_t(values), T(0));
        for (int n = 0; n < neurons; ++n)
            for (int v = 0; v < values; ++v) by_neuron[size_t(n) * values + v] = terms[size_t(order[v]) * width + n];
    }
    int count(int node) const { return end[node] - begin[node]; }
};

template <class T> struct Network {
    int neurons = 0, width = 0, axes = 0, widest = 0, columns = 0;
    std::vector<AxisTree<T>> trees;
    std::vector<Layer<T>> layers;

    void make(const ModelSpec& from) {
        neurons = from.neurons;
        columns = from.columns;
        width = padded<T>(neurons);
        axes = int(from.axes.size());
        widest = width;
        trees.resize(axes);
        for (int a = 0; a < axes; ++a) trees[a].make(from.axes[a], neurons);
        layers.resize(from.layers.size());
        for (size_t k = 0; k < layers.size(); ++k) {
            layers[k].make(from.layers[k]);
            widest = std::max(widest, layers[k].width);
        }
    }
    int outputs() const { return layers.empty() ? neurons : layers.back().outputs; }
};

// How far values get before and after each activation, over the whole lattice of one person.
struct Reach {
    std::vector<std::vector<double>> before, after;
};

template <class T> class Zonotope {
  public:
    explicit Zonotope(const Network<T>& network)
        : net(network), stride(network.widest),
          now((network.axes + 2) * size_t(network.widest)), next(now.size()) {}

    T* center() { return now.data(); }
    T* generator(int axis) { return now.data() + size_t(axis + 1) * stride; }
    T* box() { return now.data() + size_t(net.axes + 1) * stride; }

    // Bound the outputs over a node; `reach` is filled where it is not null.
    void run(const T* person, const T* person_box, const int32_t* ids, Reach* reach) {
        first(person, person_box, ids);
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const Layer<T>& layer = net.layers[k];
            if (reach) note(reach->before[k], layer.inputs);
            activate(layer.activation, layer.inputs);
            if (reach) note(reach->after[k], layer.inputs);
            affine(layer);
        }
    }

  private:
    const Network<T>& net;
    int stride;
    std::vector<T> now, next;  // center, a generator an axis, box: each `stride` long

    void first(const T* person, const T* person_box, const int32_t* ids) {
        const T rounding = T(gamma(Format<T>::unit, net.axes + 2, kernel_extra));
        constexpr int step = lanes_of<T>;
        for (int n = 0; n < net.width; n += step) {
            Vec<T> middle = load(person + n), sizes = absolute<T>(middle), wide = load(person_box + n);
            for (int a = 0; a < net.axes; ++a) {
                const AxisTree<T>& tree = net.trees[a];
                const size_t at = size_t(ids[a]) * net.width + n;
                const Vec<T> c = load(&tree.center[at]);
                middle += c;
                sizes += absolute<T>(c);
                wide += load(&tree.rest[at]);
                store(generator(a) + n, load(&tree.generator[at]));
            }
            store(center() + n, middle);
            store(box() + n, (wide + rounding * sizes) * upward<T>(net.axes + 2));
        }
    }

    // Σ|generators| of the values n to n + step.
    Vec<T> moving(int n) {
        Vec<T> sum{};
        for (int a = 0; a < net.axes; ++a) sum += absolute<T>(load(generator(a) + n));
        return sum;
    }

    void note(std::vector<double>& out, int neurons) {
        out.resize(size_t(padded<T>(neurons)));
        for (int n = 0; n < neurons; n += lanes_of<T>) {
            T sums[lanes_of<T>];
            store(sums, absolute<T>(load(center() + n)) + moving(n) + load(box() + n));
            for (int l = 0; l < lanes_of<T>; ++l) out[size_t(n + l)] = double(sums[l]) * (1 + 0x1p-18);
        }
    }

    void activate(const Activation<T>& bend, int neurons) {
        if (bend.identity) return;
        if (bend.relu) {
            relu(neurons);
            return;
        }
        for (int n = 0; n < neurons; ++n) bend_one(bend, n);
    }

    // relu(x) lies within λx + [0, μ] for any λ in [0, 1], with μ = max(−λl, (1 − λ)u).
    void relu(int neurons) {
        constexpr int step = lanes_of<T>;
        const Vec<T> zero{}, one = spread(T(1));
        const T slack = T(gamma(Format<T>::unit, net.axes + 4, 2));
        for (int n = 0; n < neurons; n += step) {
            const Vec<T> c = load(center() + n), b = load(box() + n);
            const Vec<T> radius = (moving(n) + b) * upward<T>(net.axes + 2);
            const Vec<T> widen = slack * absolute<T>(c);
            const Vec<T> low = c - radius - widen, high = c + radius + widen;
            Vec<T> slope = high / (high - low);
            slope = select<T>(low >= zero, one, slope);
            slope = select<T>(high <= zero, zero, slope);
            Vec<T> over = larger<T>(-slope * low, (one - slope) * high);
            over = larger<T>(over, zero);
            over = select<T>((low >= zero) | (high <= zero), zero, over);
            const Vec<T> half = over * T(0.5) * upward<T>(4);
            const Vec<T> middle = slope * c + half;
            // Products with the slope are rounded, unless it is 0 or 1.
            const Vec<T> partial = select<T>((slope == zero) | (slope == one), zero, one);
            const Vec<T> rounding = partial * slack * (absolute<T>(c) + radius + half);
            store(center() + n, middle);
            store(box() + n, (slope * b + half + rounding) * upward<T>(4));
            for (int a = 0; a < net.axes; ++a) store(generator(a) + n, slope * load(generator(a) + n));
        }
    }

    // Any piecewise-linear f: with the chord's slope λ, f(x) − λx is extreme at an end or a break.
    void bend_one(const Activation<T>& bend, int n) {
        T radius = box()[n];
        for (int a = 0; a < net.axes; ++a) radius += std::abs(generator(a)[n]);
        const T slack = T(gamma(Format<T>::unit, net.axes + 4, 2));
        const T c = center()[n];
        radius = radius * upward<T>(net.axes + 2) + slack * std::abs(c);
        const T low = c - radius, high = c + radius;
        const T slope = high > low ? (bend.at(high, n) - bend.at(low, n)) / (high - low) : T(0);
        T least = bend.at(low, n) - slope * low, most = least;
        const auto look = [&](T x) {
            const T rest = bend.at(x, n) - slope * x;
            least = std::min(least, rest);
            most = std::max(most, rest);
        };
        look(high);
        for (int p = 0; p + 1 < bend.pieces; ++p) {
            const T at = bend.breaks[size_t(p) * bend.width + n];
            if (at > low && at < high) look(at);
        }
        const T steep = std::max(bend.steepest[n], std::abs(slope));
        const T size = (bend.steepest[n] + std::abs(slope)) * (std::abs(c) + radius) + bend.offset[n];
        const T rounding = T(gamma(Format<T>::unit, net.axes + 6, kernel_extra)) * size + T(8 * Format<T>::tiny);
        (void)steep;
        center()[n] = slope * c + (least + most) / 2;
        box()[n] = (std::abs(slope) * box()[n] + (most - least) / 2 + rounding) * upward<T>(6);
        for (int a = 0; a < net.axes; ++a) generator(a)[n] *= slope;
    }

    void affine(const Layer<T>& layer) {
        const T rounding = T(gamma(Format<T>::unit, layer.inputs, kernel_extra));
        const T tiny = T(Format<T>::tiny);
        constexpr int step = lanes_of<T>;
        const int parts = net.axes + 2;
        for (int i = 0; i < layer.inputs; i += step) {  // into |W| go the box and γ times the sizes
            const Vec<T> b = load(box() + i), size = absolute<T>(load(center() + i)) + moving(i) + b;
            store(box() + i, b + rounding * size + spread(tiny));
        }
        for (int o = 0; o < layer.width; o += step) {
            // Several parts at once: their sums do not wait for each other.
            int part = 0;
            for (; part + 4 < parts; part += 4) products<4>(layer, layer.columns.data(), part, o);
            for (; part + 1 < parts; ++part) products<1>(layer, layer.columns.data(), part, o);
            products<1>(layer, layer.sizes.data(), parts - 1, o);
            T* middle = next.data() + o;
            store(middle, load(middle) + load(&layer.bias[o]));
            T* wide = next.data() + size_t(parts - 1) * stride + o;
            const Vec<T> more = rounding * load(&layer.bias_size[o]) + spread(T(5 * (layer.inputs + 1)) * tiny);
            store(wide, (load(wide) + more) * upward<T>(layer.inputs));
        }
        now.swap(next);
    }

    template <int P> void products(const Layer<T>& layer, const T* weights, int part, int o) {
        Vec<T> sums[P][2] = {};  // even and odd inputs apart, again not to wait
        const T* in = now.data() + size_t(part) * stride;
        int i = 0;
        for (; i + 1 < layer.inputs; i += 2) {
            const Vec<T> even = load(weights + size_t(i) * layer.width + o);
            const Vec<T> odd = load(weights + size_t(i + 1) * layer.width + o);
            for (int p = 0; p < P; ++p) {
                sums[p][0] += spread(in[size_t(p) * stride + i]) * even;
                sums[p][1] += spread(in[size_t(p) * stride + i + 1]) * odd;
            }
        }
        if (i < layer.inputs)
            for (int p = 0; p < P; ++p)
                sums[p][0] += spread(in[size_t(p) * stride + i]) * load(weights + size_t(i) * layer.width + o);
        for (int p = 0; p < P; ++p) store(next.data() + size_t(part + p) * stride + o, sums[p][0] + sums[p][1]);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Lanes: up to 64 counterparts scored side by side.
#pragma once
#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

constexpr int most_lanes = 64;

template <class T> class Lanes {
  public:
    explicit Lanes(const Network<T>& network)
        : net(network), now(size_t(network.widest) * most_lanes), next(now.size()) {}

    // The outputs of all combinations of the axes' chosen values, output by output, `most_lanes`
    // apart. `turns` lists the axes, the longest first: the first of them moves fastest along lanes.
    const T* combinations(const T* person, const int32_t* ids, const int* turns, int count) {
        for (int n = 0; n < net.neurons; ++n) {
            T* row = &now[size_t(n) * most_lanes];
            T mine = person[n];
            int filled = 0;  // lanes that hold the combinations of the axes so far
            for (int turn = 0; turn < net.axes; ++turn) {
                const int a = turns[turn];
                const AxisTree<T>& tree = net.trees[a];
                const T* terms = &tree.by_neuron[size_t(n) * tree.values + tree.begin[ids[a]]];
                const int many = tree.count(ids[a]);
                if (many == 1) {  // no choice: the same for every lane, one of them at the end
                    mine += terms[0];
                } else if (filled == 0) {
                    for (int v = 0; v < many; ++v) row[v] = terms[v];
                    filled = many;
                } else {
                    for (int v = many - 1; v >= 0; --v) {  // the first part last: the others read it
                        const T term = terms[v];
                        T* to = row + v * filled;
#pragma GCC ivdep
                        for (int l = 0; l < filled; ++l) to[l] = row[l] + term;
                    }
                    filled *= many;
                }
            }
            if (filled == 0) row[0] = 0, filled = 1;
            for (int l = 0; l < filled; ++l) row[l] += mine;
        }
        return run(count);
    }

    // The outputs of listed assignments; digits are (assignments, axes).
    const T* listed(const T* person, const int32_t* digits, int count) {
        for (int l = 0; l < count; ++l)
            for (int n = 0; n < net.neurons; ++n) {
                T sum = person[n];
                for (int a = 0; a < net.axes; ++a)
                    sum += net.trees[a].terms[size_t(digits[size_t(l) * net.axes + a]) * net.width + n];
                now[size_t(n) * most_lanes + l] = sum;
            }
        return run(count);
    }

  private:
    const Network<T>& net;
    std::vector<T> now, next;
    bool bends = false;  // whether a ReLU follows the layer at hand; it is done on the way

    const T* run(int count) {
        const int vectors = (count + lanes_of<T> - 1) / lanes_of<T>;
        for (int n = 0; n < net.neurons; ++n)  // lanes without a counterpart hold something harmless
            for (int l = count; l < vectors * lanes_of<T>; ++l) now[size_t(n) * most_lanes + l] = 0;
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const Layer<T>& layer = net.layers[k];
            if (k == 0 || !layer.activation.relu) activate(layer.activation, layer.inputs, vectors);
            bends = k + 1 < net.layers.size() && net.layers[k + 1].activation.relu;
            int done = 0;
            for (; done + 4 <= vectors; done += 4) affine<4>(layer, done);
            if (vectors - done >= 2) affine<2>(layer, done), done += 2;
            if (vectors - done >= 1) affine<1>(layer, done);
            now.swap(next);
        }
        return now.data();
    }

    void activate(const Activation<T>& bend, int neurons, int vectors) {
        if (bend.identity) return;
        constexpr int step = lanes_of<T>;
        for (int n = 0; n < neurons; ++n) {
            T* row = &now[size_t(n) * most_lanes];
            for (int v = 0; v < vectors; ++v) {
                const Vec<T> z = load(row + v * step);
                if (bend.relu) {
                    store(row + v * step, larger<T>(z, Vec<T>{}));
                    continue;
                }
                Vec<T> out = bend.slopes[n] * z + bend.intercepts[n];
                for (int p = 1; p < bend.pieces; ++p) {
                    const size_t at = size_t(p) * bend.width + n;
                    const Vec<T> piece = bend.slopes[at] * z + bend.intercepts[at];
                    out = select<T>(z >= spread(bend.breaks[at - bend.width]), piece, out);
                }
                store(row + v * step, out);
            }
        }
    }

    template <int V> void affine(const Layer<T>& layer, int from) {
        int o = 0;  // a few outputs together share what they load
        constexpr int together = V == 4 ? 2 : 4;
        for (; o + together <= layer.outputs; o += together) outputs<V, together>(layer, from, o);
        for (; o < layer.outputs; ++o) outputs<V, 1>(layer, from, o);
    }

    template <int V, int O> void outputs(const Layer<T>& layer, int from, int first) {
        constexpr int step = lanes_of<T>;
        Vec<T> sums[O][V];
        for (int o = 0; o < O; ++o)
            for (int v = 0; v < V; ++v) sums[o][v] = spread(layer.bias[first + o]);
        const T* weights = &layer.rows[size_t(first) * layer.inputs];
        const T* in = now.data() + from * step;
        for (int i = 0; i < layer.inputs; ++i, in += most_lanes) {
            Vec<T> x[V];
            for (int v = 0; v < V; ++v) keep(x[v] = load(in + v * step));
            for (int o = 0; o < O; ++o) {
                const Vec<T> w = spread(weights[size_t(o) * layer.inputs + i]);
                for (int v = 0; v < V; ++v) sums[o][v] += w * x[v];
            }
        }
        for (int o = 0; o < O; ++o)
            for (int v = 0; v < V; ++v) {
                const Vec<T> out = bends ? larger<T>(sums[o][v], Vec<T>{}) : sums[o][v];
                store(&next[size_t(first + o) * most_lanes + (from + v) * step], out);
            }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

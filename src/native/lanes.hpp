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
    // apart. The combination with number Σ v_a · Π_{b<a} n_b stands in that lane.
    const T* combinations(const T* person, const int32_t* ids, int count) {
        for (int n = 0; n < net.neurons; ++n) now[size_t(n) * most_lanes] = person[n];
        int filled = 1;
        for (int a = 0; a < net.axes; ++a) {
            const AxisTree<T>& tree = net.trees[a];
            const int32_t* values = &tree.order[tree.begin[ids[a]]];
            const int many = tree.count(ids[a]);
            for (int n = 0; n < net.neurons; ++n) {
                T* row = &now[size_t(n) * most_lanes];
                for (int v = many - 1; v >= 0; --v) {
                    const T term = tree.terms[size_t(values[v]) * net.width + n];
                    for (int l = filled - 1; l >= 0; --l) row[v * filled + l] = row[l] + term;
                }
            }
            filled *= many;
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

    const T* run(int count) {
        const int vectors = (count + lanes_of<T> - 1) / lanes_of<T>;
        for (int n = 0; n < net.neurons; ++n)  // lanes without a counterpart hold something harmless
            for (int l = count; l < vectors * lanes_of<T>; ++l) now[size_t(n) * most_lanes + l] = 0;
        for (const Layer<T>& layer : net.layers) {
            activate(layer.activation, layer.inputs, vectors);
            int done = 0;
            for (; done + 8 <= vectors; done += 8) affine<8>(layer, done);
            for (; done + 4 <= vectors; done += 4) affine<4>(layer, done);
            for (; done + 2 <= vectors; done += 2) affine<2>(layer, done);
            for (; done < vectors; ++done) affine<1>(layer, done);
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
        constexpr int step = lanes_of<T>;
        for (int o = 0; o < layer.outputs; ++o) {
            Vec<T> sums[V];
            for (int v = 0; v < V; ++v) sums[v] = spread(layer.bias[o]);
            const T* weights = &layer.rows[size_t(o) * layer.inputs];
            const T* in = now.data() + from * step;
            for (int i = 0; i < layer.inputs; ++i) {
                const Vec<T> w = spread(weights[i]);
                for (int v = 0; v < V; ++v) sums[v] += w * load(in + size_t(i) * most_lanes + v * step);
            }
            for (int v = 0; v < V; ++v) store(&next[size_t(o) * most_lanes + (from + v) * step], sums[v]);
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

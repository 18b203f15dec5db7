// Points: up to 64 counterparts scored side by side, those of several small nodes together.
#pragma once
#include "block.hpp"

namespace feta {
namespace FETA_ISA {

constexpr int most_points = 64;

template <class T> class Points {
  public:
    static constexpr int lanes = lanes_of<T>;

    explicit Points(const Network<T>& network)
        : net(network), block(network.widest, most_points / lanes),
          rows(size_t(most_points) * network.width) {
        nodes.reserve(size_t(most_points) * network.axes);
        starts.reserve(most_points + 1);
    }

    int count() const { return many; }
    const T* output(int o) const { return block.at(o, 0); }  // one number a point

    void clear() {
        many = 0;
        starts.clear();
        nodes.clear();
        last.clear();
    }

    // Take all counterparts of a node; there must be room.
    void add(const T* person, const int32_t* ids, int node_count) {
        starts.push_back(many);
        nodes.insert(nodes.end(), ids, ids + net.axes);
        int32_t longest_axis = 0;
        for (int a = 1; a < net.axes; ++a)
            if (net.trees[a].count(ids[a]) > net.trees[longest_axis].count(ids[longest_axis]))
                longest_axis = a;
        last.push_back(longest_axis);
        const bool relu = !net.layers.empty() && net.layers[0].activation.relu;
        const size_t width = size_t(net.width);
        T* to = &rows[size_t(many) * width];
        std::copy_n(person, net.width, to);
        size_t filled = 1;
        const auto multiply = [&](int a, bool bend) {
            const AxisTree<T>& tree = net.trees[a];
            const T* terms = &tree.ordered[size_t(tree.begin[ids[a]]) * width];
            const size_t values = size_t(tree.count(ids[a]));
            for (size_t v = values; v-- > 0;) {  // the first part last: the others read it
                const T *from = to, *term = terms + v * width;
                T* out = to + v * filled * width;
                for (size_t l = 0; l < filled; ++l, from += width, out += width)
                    for (size_t n = 0; n < width; n += lanes) {
                        const Vec<T> z = load(from + n) + load(term + n);
                        store(out + n, bend ? larger<T>(z, Vec<T>{}) : z);
                    }
            }
            filled *= values;
        };
        for (int a = 0; a < net.axes; ++a)
            if (a != longest_axis) multiply(a, false);
        multiply(longest_axis, relu);
        many += node_count;
    }

    // Take one listed assignment.
    void add_listed(const T* person, const int32_t* digits) {
        T* to = &rows[size_t(many++) * net.width];
        std::copy_n(person, net.width, to);
        for (int a = 0; a < net.axes; ++a) {
            const T* terms = &net.trees[a].terms[size_t(digits[a]) * net.width];
            for (int n = 0; n < net.width; n += lanes)
                store(to + n, load(to + n) + load(terms + n));
        }
        const bool relu = !net.layers.empty() && net.layers[0].activation.relu;
        for (int n = 0; relu && n < net.width; n += lanes)
            store(to + n, larger<T>(load(to + n), Vec<T>{}));
    }

    // Score what was taken.
    void run() {
        const int vectors = (many + lanes - 1) / lanes;
        const T* pointers[lanes];
        for (int v = 0; v < vectors; ++v) {
            for (int l = 0; l < lanes; ++l)
                pointers[l] = &rows[size_t(std::min(v * lanes + l, many - 1)) * net.width];
            for (int n = 0; n < net.width; n += lanes)
                transpose(pointers, n, block.at(n, v), block.step());
        }
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const Layer<T>& layer = net.layers[k];
            if (!layer.activation.relu) activate(layer.activation, layer.inputs, vectors);
            if (k == 0 || !layer.activation.relu) block.find_alive(layer.inputs, vectors);
            block.step_points(layer, vectors,
                              k + 1 < net.layers.size() && net.layers[k + 1].activation.relu);
        }
    }

    // The digits of a point of the nodes taken.
    void digits(int point, int32_t* out) const {
        const size_t node =
            size_t(std::upper_bound(starts.begin(), starts.end(), point) - starts.begin()) - 1;
        const int32_t* ids = &nodes[node * size_t(net.axes)];
        int rest = point - starts[node];
        const auto take = [&](int a) {
            const AxisTree<T>& tree = net.trees[a];
            const int values = tree.count(ids[a]);
            out[a] = tree.order[tree.begin[ids[a]] + rest % values];
            rest /= values;
        };
        for (int a = 0; a < net.axes; ++a)
            if (a != last[node]) take(a);
        take(last[node]);
    }

  private:
    const Network<T>& net;
    Block<T> block;
    Array<T> rows;  // (points, width): the first layer
    int many = 0;
    std::vector<int32_t> starts, nodes,
        last;  // by node: its first point, its ids, its longest axis

    void activate(const Activation<T>& bend, int neurons, int vectors) {
        if (bend.identity) return;
        for (int n = 0; n < neurons; ++n)
            for (T *x = block.at(n, 0), *end = x + vectors * lanes; x < end; x += lanes)
                store(x, bend.at(load(x), n));
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Points: scores up to 64 counterparts together, one per lane; several small nodes share a batch.
#pragma once
#include "block.hpp"

namespace feta {
namespace FETA_ISA {

constexpr int max_points = 64;

template <class T> class Points {
  public:
    static constexpr int lanes = lanes_of<T>;

    explicit Points(const Network<T>& network)
        : net(network), block(network.widest, max_points / lanes),
          rows(size_t(max_points) * network.width) {
        nodes.reserve(size_t(max_points) * network.axes);
        starts.reserve(max_points + 1);
    }

    int count() const { return n_points; }
    const T* scores(int o) const { return block.at(o, 0); }  // one score per point

    void clear() {
        n_points = 0;
        starts.clear();
        nodes.clear();
        longest_axes.clear();
        listed.clear();
    }

    // Add all counterparts of a node; the caller ensures that they fit.
    void add(const T* person, const int32_t* ids, int node_count) {
        starts.push_back(n_points);
        nodes.insert(nodes.end(), ids, ids + net.axes);
        int32_t longest_axis = 0;
        for (int a = 1; a < net.axes; ++a)
            if (net.trees[a].count(ids[a]) > net.trees[longest_axis].count(ids[longest_axis]))
                longest_axis = a;
        longest_axes.push_back(longest_axis);
        const bool relu = !net.layers.empty() && net.layers[0].activation.relu;
        const size_t width = size_t(net.width);
        T* row = &rows[size_t(n_points) * width];
        std::copy_n(person, net.width, row);
        size_t filled = 1;
        const auto multiply = [&](int a, bool apply_relu) {
            const AxisTree<T>& tree = net.trees[a];
            const T* terms = &tree.ordered[size_t(tree.begin[ids[a]]) * width];
            const size_t values = size_t(tree.count(ids[a]));
            for (size_t v = values; v-- > 0;) {  // block 0 last, because the others read it
                const T *from = row, *term = terms + v * width;
                T* out = row + v * filled * width;
                for (size_t l = 0; l < filled; ++l, from += width, out += width)
                    for (size_t n = 0; n < width; n += lanes) {
                        const Vec<T> z = load(from + n) + load(term + n);
                        store(out + n, apply_relu ? larger<T>(z, Vec<T>{}) : z);
                    }
            }
            filled *= values;
        };
        for (int a = 0; a < net.axes; ++a)
            if (a != longest_axis) multiply(a, false);
        multiply(longest_axis, relu);
        n_points += node_count;
    }

    // Add the counterpart with these coordinates.
    void add_listed(const T* person, const int32_t* coordinates) {
        T* row = &rows[size_t(n_points++) * net.width];
        listed.insert(listed.end(), coordinates, coordinates + net.axes);
        std::copy_n(person, net.width, row);
        for (int a = 0; a < net.axes; ++a) {
            const T* terms = &net.trees[a].terms[size_t(coordinates[a]) * net.width];
            for (int n = 0; n < net.width; n += lanes)
                store(row + n, load(row + n) + load(terms + n));
        }
        const bool relu = !net.layers.empty() && net.layers[0].activation.relu;
        for (int n = 0; relu && n < net.width; n += lanes)
            store(row + n, larger<T>(load(row + n), Vec<T>{}));
    }

    // Add the counterpart whose sensitive terms have this sum.
    void add_moved(const T* person, const T* terms) {
        T* row = &rows[size_t(n_points++) * net.width];
        const bool relu = !net.layers.empty() && net.layers[0].activation.relu;
        for (int n = 0; n < net.width; n += lanes) {
            const Vec<T> z = load(person + n) + load(terms + n);
            store(row + n, relu ? larger<T>(z, Vec<T>{}) : z);
        }
    }

    // Score the points that were added.
    void run() {
        const int vectors = (n_points + lanes - 1) / lanes;
        const T* pointers[lanes];
        for (int v = 0; v < vectors; ++v) {
            for (int l = 0; l < lanes; ++l)
                pointers[l] = &rows[size_t(std::min(v * lanes + l, n_points - 1)) * net.width];
            for (int n = 0; n < net.width; n += lanes)
                transpose(pointers, n, block.at(n, v), block.neuron_stride());
        }
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const Layer<T>& layer = net.layers[k];
            if (!layer.activation.relu) activate(layer.activation, layer.inputs, vectors);
            if (layer.activation.smooth.used())
                block.activate_all(layer.inputs);
            else if (k == 0 || !layer.activation.relu)
                block.find_active(layer.inputs, vectors);
            block.apply_layer(layer, vectors,
                              k + 1 < net.layers.size() && net.layers[k + 1].activation.relu);
        }
    }

    // Compute the coordinates of a point that `add` or `add_listed` added; a batch has one kind.
    void coordinates(int point, int32_t* out) const {
        if (!listed.empty()) {
            std::copy_n(&listed[size_t(point) * net.axes], net.axes, out);
            return;
        }
        const size_t node =
            size_t(std::upper_bound(starts.begin(), starts.end(), point) - starts.begin()) - 1;
        const int32_t* ids = &nodes[node * size_t(net.axes)];
        int rest = point - starts[node];
        const auto set_axis = [&](int a) {
            const AxisTree<T>& tree = net.trees[a];
            const int values = tree.count(ids[a]);
            out[a] = tree.order[tree.begin[ids[a]] + rest % values];
            rest /= values;
        };
        for (int a = 0; a < net.axes; ++a)
            if (a != longest_axes[node]) set_axis(a);
        set_axis(longest_axes[node]);
    }

  private:
    const Network<T>& net;
    Block<T> block;
    Array<T> rows;  // (points, width): input of the first activation, or its relu
    int n_points = 0;
    std::vector<int32_t> starts, nodes, longest_axes;  // per node: first point, ids, longest axis
    std::vector<int32_t> listed;                       // per listed point: its coordinates

    void activate(const Activation<T>& activation, int neurons, int vectors) {
        if (activation.identity) return;
        if (activation.smooth.used()) {
            for (int n = 0; n < neurons; ++n)
                if (activation.smooth.applies(n)) activation.smooth.apply(block.at(n, 0), vectors);
            return;
        }
        for (int n = 0; n < neurons; ++n)
            for (T *x = block.at(n, 0), *end = x + vectors * lanes; x < end; x += lanes)
                store(x, activation.at(load(x), n));
    }
};

}  // namespace FETA_ISA
}  // namespace feta

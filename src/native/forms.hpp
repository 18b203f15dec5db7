// Forms: counts the counterparts of a node that its linear forms decide.
//
// A first-layer neuron is a sum over the attributes, so a form is, too: constant + Σ h(value). The
// sums over two groups of attributes are compared pairwise.
#pragma once
#include <bit>

#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

class Forms {
  public:
    static constexpr int lanes = lanes_of<float>;
    using V = Vec<float>;

    // Nodes of at most this many counterparts are counted.
    static constexpr uint64_t most_counted = uint64_t(1) << 16;

    explicit Forms(const Network<float>& network)
        : net(network), axis_magnitudes(size_t(net.width), 0.0f), magnitudes(size_t(net.width)),
          form(net.neurons), first_value(size_t(net.axes)) {
        for (const AxisTree<float>& tree : net.trees) {
            first_column.push_back(int32_t(stride));
            if (!tree.real) stride += size_t(tree.values);
        }
        stride += size_t(lanes);  // a vector may end after the last column
        terms.assign(size_t(net.neurons) * stride, 0.0f);
        for (int a = 0; a < net.axes; ++a) {
            const AxisTree<float>& tree = net.trees[a];
            for (int n = 0; n < net.neurons && !tree.real; ++n) {
                float largest = 0;
                for (int v = 0; v < tree.values; ++v) {
                    const float term = tree.ordered[size_t(v) * net.width + n];
                    terms[size_t(n) * stride + size_t(first_column[a] + v)] = term;
                    largest = std::max(largest, std::abs(term));
                }
                axis_magnitudes[n] += largest;
            }
        }
        // Covers the rounding of these sums, and terms that are flushed to zero (lemma 24).
        const float flushed = float((net.axes + 2) * Format<float>::tiny / Format<float>::unit);
        for (float& magnitude : axis_magnitudes)
            magnitude = (magnitude + flushed) * upward<float>(net.axes);
    }

    void start(const float* person_center, const float* person_box) {
        center = person_center;
        box = person_box;
        for (int n = 0; n < net.width; ++n)
            magnitudes[n] = (std::abs(center[n]) + axis_magnitudes[n]) * upward<float>(1);
    }

    // Take the forms of nodes that were bounded with `Backward`. A counterpart is decided if its
    // score is provably less than threshold − margin; with sign −1, more than threshold + margin.
    void take(Zonotope<float>& zonotope, float sign, double threshold, double margin) {
        limit = double(sign) * threshold - margin;
        zonotope.linear_form(broadcast(sign), box, magnitudes.data(), form);
        V sum{};
        for (int l = 0; l < form.n_active; ++l)
            sum += load(&form.coefficients[size_t(l) * lanes]) * center[form.active[size_t(l)]];
        store(at_center, sum);
    }

    // Count the decided counterparts of the node in a lane.
    uint64_t count(int lane, const int32_t* node) {
        group(node);
        sum_neurons(lane, node);
        sum_groups(node);
        bound = bound_of_sums(lane);
        Mask<float> counts{};  // at most `most_counted` each
        for (int j = 0; j < sizes[1]; ++j) {
            const V below = broadcast(row_limit(j));
            for (int i = 0; i < sizes[0]; i += lanes) counts -= load(&sums[0][size_t(i)]) < below;
        }
        uint64_t decided = 0;
        for (int l = 0; l < lanes; ++l) decided += uint64_t(counts[l]);
        return decided;
    }

    // Append the coordinates of each undecided counterpart of the node counted last.
    void list(const int32_t* node, std::vector<int32_t>& out) const {
        for (int j = 0; j < sizes[1]; ++j) {
            const V below = broadcast(row_limit(j));
            for (int i = 0; i < sizes[0]; i += lanes) {
                const Mask<float> decided = load(&sums[0][size_t(i)]) < below;
                if (all<float>(decided)) continue;
                for (int l = 0; l < lanes && i + l < sizes[0]; ++l) {
                    if (decided[l]) continue;
                    out.resize(out.size() + size_t(net.axes));
                    set_coordinates(node, i + l, j, &*(out.end() - net.axes));
                }
            }
        }
    }

  private:
    const Network<float>& net;
    Array<float> axis_magnitudes, magnitudes;  // (width)
    Array<float> terms;                        // (neurons, stride): of all axes, in leaf order
    size_t stride = 0;
    std::vector<int32_t> first_column;  // by axis
    const float *center = nullptr, *box = nullptr;
    LinearForm<float> form;
    double limit = 0;                      // of sign · score
    float bound = 0;                       // of the sum of both groups
    std::vector<int> groups[2], by_count;  // axes
    int sizes[2] = {1, 1};                 // combinations of values
    Array<float> sums[2], partial;         // by group, padded with infinity
    std::vector<int32_t> columns;          // of the vectors of values
    std::vector<int> first_value;          // by axis
    Array<float> values;                   // Σ coefficient · term
    alignas(64) float at_center[lanes];

    // Divide the axes into two groups with similar numbers of combinations, the larger one first.
    void group(const int32_t* node) {
        for (int g = 0; g < 2; ++g) groups[g].clear(), sizes[g] = 1;
        const auto count = [&](int a) { return net.trees[a].count(node[a]); };
        by_count.resize(size_t(net.axes));
        for (int a = 0; a < net.axes; ++a) {  // insertion sort, the largest first
            int k = a;
            for (; k > 0 && count(by_count[size_t(k - 1)]) < count(a); --k)
                by_count[size_t(k)] = by_count[size_t(k - 1)];
            by_count[size_t(k)] = a;
        }
        for (const int a : by_count) {
            const int g = sizes[1] < sizes[0];
            groups[g].push_back(a);
            sizes[g] *= count(a);
        }
        if (sizes[0] < sizes[1]) {
            std::swap(sizes[0], sizes[1]);
            std::swap(groups[0], groups[1]);
        }
    }

    // Compute Σ coefficient · term for the values of all axes of a node.
    void sum_neurons(int lane, const int32_t* node) {
        columns.clear();
        for (int a = 0; a < net.axes; ++a) {
            const AxisTree<float>& tree = net.trees[a];
            first_value[size_t(a)] = int(columns.size()) * lanes;
            for (int v = 0; v < tree.count(node[a]); v += lanes)
                columns.push_back(first_column[size_t(a)] + tree.begin[node[a]] + v);
        }
        values.resize(columns.size() * lanes);
        size_t c = 0;
        for (; c + 8 <= columns.size(); c += 8) products<8>(lane, c);
        if (columns.size() - c >= 4) products<4>(lane, c), c += 4;
        for (; c + 2 <= columns.size(); c += 2) products<2>(lane, c);
        if (c < columns.size()) products<1>(lane, c);
    }

    template <int K> void products(int lane, size_t first) {
        V sum[K]{};
        const int32_t* column = &columns[first];
        const float* a = form.coefficients.data() + lane;
        for (int l = 0; l < form.n_active; ++l, a += lanes) {
            const float* row = terms.data() + size_t(form.active[size_t(l)]) * stride;
            for (int k = 0; k < K; ++k) sum[k] += *a * load(row + column[k]);
        }
        for (int k = 0; k < K; ++k) store(&values[(first + size_t(k)) * lanes], sum[k]);
    }

    // Compute the sums over each group for all combinations of values.
    void sum_groups(const int32_t* node) {
        for (int g = 0; g < 2; ++g) {
            // Vectors may end after the last sum: the next ones overwrite that.
            for (Array<float>* to : {&sums[g], &partial}) to->resize(size_t(sizes[g]) + 2 * lanes);
            sums[g][0] = 0;
            size_t filled = 1;
            for (const int a : groups[g]) {
                const size_t many = size_t(net.trees[a].count(node[a]));
                const float* value = &values[size_t(first_value[size_t(a)])];
                for (size_t v = 0; v < many; ++v)
                    for (size_t f = 0; f < filled; f += lanes)
                        store(&partial[v * filled + f], load(&sums[g][f]) + value[v]);
                sums[g].swap(partial);
                filled *= many;
            }
            std::fill_n(sums[g].begin() + sizes[g], lanes, std::numeric_limits<float>::infinity());
        }
    }

    // Return what the sum of both groups must be less than, rounded down (lemma 24).
    float bound_of_sums(int lane) const {
        const double constant = form.constants[lane], base = at_center[lane],
                     rest = limit - (constant + base),
                     size = std::abs(limit) + std::abs(constant) + std::abs(base),
                     down = rest - double(difference32) * std::abs(rest) - difference64 * size;
        const bool is_bound = std::abs(down) < double(std::numeric_limits<float>::max());
        return is_bound ? float(down) : -std::numeric_limits<float>::infinity();
    }

    // Return what the sum of the first group must be less than, rounded down.
    float row_limit(int j) const {
        const float rest = bound - sums[1][size_t(j)];
        return rest - difference32 * std::abs(rest);
    }

    void set_coordinates(const int32_t* node, int first, int second, int32_t* out) const {
        int rest[2] = {first, second};
        for (int g = 0; g < 2; ++g)
            for (const int a : groups[g]) {
                const AxisTree<float>& tree = net.trees[a];
                const int many = tree.count(node[a]);
                out[a] = tree.order[size_t(tree.begin[node[a]] + rest[g] % many)];
                rest[g] /= many;
            }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

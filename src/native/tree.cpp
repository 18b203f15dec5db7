#include "tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "arithmetic.hpp"

namespace feta {
namespace {

// Bound the influence of each first-layer neuron on the scores; only the proportions matter.
std::vector<double> importance(const ModelSpec& model) {
    std::vector<double> weight(size_t(model.rule.outputs), 1.0);
    for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer) {
        std::vector<double> before(size_t(layer->inputs), 0.0);
        for (int o = 0; o < layer->outputs; ++o)
            for (int i = 0; i < layer->inputs; ++i)
                before[i] += weight[o] * std::abs(layer->weight[size_t(o) * layer->inputs + i]);
        const ActivationSpec& activation = layer->activation;
        for (int i = 0; i < layer->inputs; ++i) {
            double steepest = 0;
            for (int p = 0; p < activation.pieces; ++p)
                steepest =
                    std::max(steepest, std::abs(activation.slopes[size_t(p) * activation.width +
                                                                  (activation.width > 1 ? i : 0)]));
            before[i] *= steepest;
        }
        weight = std::move(before);
    }
    const double largest = *std::max_element(weight.begin(), weight.end());
    for (double& value : weight)
        value = largest > 0 && largest < 1e300 ? value / largest : 1.0;  // its square is finite
    return weight;
}

class TreeBuilder {
  public:
    TreeBuilder(const AxisSpec& from, const std::vector<double>& weights)
        : axis(from), importance(weights), neurons(int(weights.size())),
          indices(size_t(axis.values)), projections(size_t(axis.values)),
          deviations(size_t(axis.values) * weights.size()) {
        tree.neurons = neurons;
        for (auto* parts : {&tree.center, &tree.generator, &tree.rest})
            parts->reserve(2 * deviations.size());
        for (auto* parts : {&mean, &fitted, &low, &high, &largest}) parts->resize(size_t(neurons));
        for (const double weight : importance) squared.push_back(weight * weight);
        std::iota(indices.begin(), indices.end(), 0);
        positions.resize(indices.size());
        split(0, axis.values, no_node);
        tree.order = indices;
    }
    Tree tree;

  private:
    const AxisSpec& axis;
    const std::vector<double>& importance;
    int neurons;
    std::vector<int32_t> indices;                 // the values in the current order
    std::vector<double> projections, deviations;  // by value: on the main direction; from the mean
    std::vector<double> mean, fitted, low, high, largest;  // by neuron, of one node
    std::vector<double> squared;                           // importance · importance
    std::vector<std::pair<double, int32_t>> sorted;
    std::vector<double> positions;  // of collinear values on their line, by index

    static constexpr int32_t no_node = -1;

    // Build the node of a range of values and its children. `line` is the ancestor whose values are
    // collinear, or `no_node`.
    int32_t split(int from, int to, int32_t line) {
        const int32_t node = tree.nodes();
        tree.begin.push_back(from);
        tree.end.push_back(to);
        tree.left.push_back(no_node);
        tree.right.push_back(no_node);
        if (axis.real)
            bound_range(from, to);
        else if (line != no_node)
            bound_on_line(from, to, line);
        else {
            const bool collinear = bound_values(from, to);
            sort_by_projection(from, to);
            if (collinear) line = node;
        }
        if (to - from == 1) return node;
        const int half = from + (to - from + 1) / 2;
        const int32_t left = split(from, half, line), right = split(half, to, line);
        tree.left[node] = left;
        tree.right[node] = right;
        return node;
    }

    // Sort the values of a node along its main direction.
    void sort_by_projection(int from, int to) {
        sorted.clear();
        for (int k = from; k < to; ++k) sorted.emplace_back(projections[k - from], indices[k]);
        std::sort(sorted.begin(), sorted.end());
        for (int k = from; k < to; ++k)
            std::tie(positions[k], indices[k]) = sorted[size_t(k - from)];
    }

    void add(int n, double center, double generator, double rest, double& spanned,
             double& residual) {
        tree.center.push_back(center);
        tree.generator.push_back(generator);
        tree.rest.push_back(rest);
        spanned += importance[n] * std::abs(generator);
        residual += importance[n] * rest;
    }

    // Bound pieces of a range: the terms are linear in the value, so the pieces keep their order.
    void bound_range(int from, int to) {
        const double a = edge(axis, from), b = edge(axis, to), midpoint = a + (b - a) / 2;
        const double half = std::max(b - midpoint, midpoint - a) * few64;
        double spanned = 0, residual = 0;
        for (int n = 0; n < neurons; ++n) {
            const double slope = axis.slopes[n], center = slope * midpoint, g = slope * half;
            add(n, center, g, tree_rounding * (std::abs(center) + std::abs(g)) + floor64, spanned,
                residual);
        }
        tree.weight.push_back(spanned / 2);
    }

    // Bound part of a line: the residual of the whole line also covers its parts.
    void bound_on_line(int from, int to, int32_t line) {
        const double a = positions[from], b = positions[to - 1], midpoint = a + (b - a) / 2;
        const double half = std::max(b - midpoint, midpoint - a) * few64;
        double spanned = 0, residual = 0;
        for (int n = 0; n < neurons; ++n) {
            const size_t at = size_t(line) * neurons + n;
            const double slope = tree.generator[at], center = tree.center[at] + slope * midpoint;
            const double magnitude = std::abs(tree.center[at]) + std::abs(slope) + std::abs(center);
            add(n, center, slope * half, tree.rest[at] + tree_rounding * magnitude, spanned,
                residual);
        }
        tree.weight.push_back(residual + (to - from > 2 ? spanned / 2 : spanned));
    }

    // Fit center and generator; the rest covers the residuals and all rounding. Return whether the
    // values are collinear.
    bool bound_values(int from, int to) {
        const int count = to - from;
        std::fill(mean.begin(), mean.end(), 0.0);
        for (int k = from; k < to; ++k)
            for (int n = 0; n < neurons; ++n) mean[n] += terms(k)[n];
        for (int n = 0; n < neurons; ++n) mean[n] /= count;
        double largest_distance = -1;
        int start = 0;
        for (int k = 0; k < count; ++k) {
            double distance = 0, *d = deviation(k);
            for (int n = 0; n < neurons; ++n) {
                d[n] = terms(from + k)[n] - mean[n];
                distance += d[n] * d[n] * squared[n];
            }
            if (distance > largest_distance) largest_distance = distance, start = k;
        }
        main_direction(count, start);
        fit(from, count);
        double spanned = 0, residual = 0;
        for (int n = 0; n < neurons; ++n) {
            const double g = fitted[n], center = mean[n] + (low[n] + high[n]) / 2;
            const double rest =
                (high[n] - low[n]) / 2 +
                tree_rounding * (largest[n] + std::abs(g) + std::abs(center) + std::abs(mean[n]));
            add(n, center, g, rest, spanned, residual);
        }
        // Collinear values are already bounded tightly: a split gains about half as much
        // (measured).
        const bool collinear = count > 2 && residual < 1e-9 * spanned;
        tree.weight.push_back(residual + (collinear ? spanned / 2 : spanned));
        return collinear;
    }

    // Scale the projections to ±1, fit the generator to them, and compute the range of residuals.
    void fit(int from, int count) {
        double longest = 0, squares = 0;
        for (int k = 0; k < count; ++k) longest = std::max(longest, std::abs(projections[k]));
        std::fill(fitted.begin(), fitted.end(), 0.0);
        for (int k = 0; k < count; ++k) {
            if (longest > 0) projections[k] /= longest;
            squares += projections[k] * projections[k];
            for (int n = 0; n < neurons; ++n) fitted[n] += projections[k] * deviation(k)[n];
        }
        for (int n = 0; n < neurons; ++n) fitted[n] = squares > 0 ? fitted[n] / squares : 0.0;
        std::fill(low.begin(), low.end(), INFINITY);
        std::fill(high.begin(), high.end(), -INFINITY);
        std::fill(largest.begin(), largest.end(), 0.0);
        for (int k = 0; k < count; ++k)
            for (int n = 0; n < neurons; ++n) {
                const double missed = deviation(k)[n] - projections[k] * fitted[n];
                low[n] = std::min(low[n], missed);
                high[n] = std::max(high[n], missed);
                largest[n] = std::max(largest[n], std::abs(terms(from + k)[n]));
            }
    }

    // Approximate the main direction by power iteration from the value farthest from the mean. Any
    // direction is sound, so a few steps suffice; two values need none.
    void main_direction(int count, int start) {
        std::vector<double>& direction = fitted;
        for (int n = 0; n < neurons; ++n) direction[n] = deviation(start)[n] * squared[n];
        const int last = count > 2 ? 2 : 0;
        for (int step = 0; step <= last; ++step) {
            double longest = 0;
            for (const double d : direction) longest = std::max(longest, std::abs(d));
            if (longest > 0)
                for (double& d : direction) d /= longest;
            for (int k = 0; k < count; ++k) {
                projections[k] = 0;
                for (int n = 0; n < neurons; ++n) projections[k] += deviation(k)[n] * direction[n];
            }
            if (step == last) return;
            std::fill(direction.begin(), direction.end(), 0.0);
            for (int k = 0; k < count; ++k)
                for (int n = 0; n < neurons; ++n)
                    direction[n] += projections[k] * deviation(k)[n] * squared[n];
        }
    }

    const double* terms(int index) const { return &axis.terms[size_t(indices[index]) * neurons]; }
    double* deviation(int k) { return &deviations[size_t(k) * neurons]; }
};

}  // namespace

std::vector<Tree> build_trees(const ModelSpec& model) {
    const std::vector<double> importances = importance(model);
    std::vector<Tree> trees;
    for (const AxisSpec& axis : model.axes) trees.push_back(build_tree(axis, importances));
    return trees;
}

Tree build_tree(const AxisSpec& axis, const std::vector<double>& importance) {
    return std::move(TreeBuilder(axis, importance).tree);
}

}  // namespace feta

// Worst along a real axis: a search for the highest or lowest score if one attribute is
// real-valued. A line is one combination of the other attributes.
#pragma once
#include "search_points.hpp"
#include "zonotope_backward.hpp"
#include "zonotope_forward.hpp"

namespace feta {
namespace FETA_ISA {

inline void Search::worst_real(Outcome& out, double sign, double floor, const Limits& limits) {
    start(out, Mode{});
    const int axis = real_axis;
    double largest = floor, error = 0;
    Cutoff cutoff{floor, floor, 0.0};
    std::fill(ids.begin(), ids.end(), 0);
    frontier.push(ids.data(),
                  sign > 0 ? roots.bounds().high()[person] : -roots.bounds().low()[person]);
    if (cutoff.admits(frontier.key())) {
        trace.set_slopes(real_slopes.data());
        error = error64()[0];
        trace.set_errors(errors64);
        cutoff.tolerance = 2 * error;  // the error of the best score and that of its bound
    }
    while (!frontier.empty() && cutoff.admits(frontier.key())) {
        if (out_of_budget(out, limits)) break;
        if (n_lines(frontier.first()) == 1) {
            int count = 0;
            std::vector<int32_t>& lines = children;
            while (count < Trace::lanes && !frontier.empty() && cutoff.admits(frontier.key()) &&
                   n_lines(frontier.first()) == 1) {
                std::copy_n(frontier.first(), axes, lines.begin() + count * axes);
                frontier.pop();
                load_line(count, &lines[size_t(count) * axes]);
                ++count;
            }
            trace.run(count, sign);
            out.scored_points += uint64_t(count);
            for (int l = 0; l < count; ++l) {
                const double upper = trace.upper_bound(l) + error,
                             high = upper + difference64 * std::abs(upper);
                largest = high == high ? std::max(largest, high)
                                       : std::numeric_limits<double>::infinity();
                if (!(trace.best_score(l) > out.best_score) && out.has_match) continue;
                out.has_match = true;
                out.best_score = trace.best_score(l);
                out.real_value = trace.best_position(l);
                for (int a = 0; a < axes; ++a)
                    coordinates[a] =
                        a == axis ? 0
                                  : net32.trees[a]
                                        .order[net32.trees[a].begin[lines[size_t(l) * axes + a]]];
                out.assignment_id = assignment_id_of(coordinates.data());
                cutoff.best = std::max(cutoff.best, out.best_score - error);
            }
            continue;
        }
        pop_first();
        const int n_children = split();
        out.bounded_nodes += uint64_t(n_children);
        zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                                   n_children);
        zonotope.tighten(broadcast(float(sign)));
        for (int l = 0; l < n_children; ++l) {
            double high = sign > 0 ? zonotope.high()[l] : -zonotope.low()[l];
            // Common in networks trained to be fair; the exact value ends the search sooner.
            if (zonotope.constant(l) && !spec.layers.empty())
                high = sign * spec.layers.back().bias[0];
            if (cutoff.admits(high)) frontier.push(&children[size_t(l) * axes], high);
        }
    }
    out.upper_bound = std::max(largest, cutoff.bound());
}

// Return the number of combinations of the other attributes in a node.
inline uint64_t Search::n_lines(const int32_t* node) const {
    uint64_t count = 1;
    for (int a = 0; a < axes; ++a)
        if (a != real_axis) count *= uint64_t(net32.trees[a].count(node[a]));
    return count;
}

inline void Search::load_line(int lane, const int32_t* node) {
    std::copy_n(roots.center64(person), net32.neurons, line_terms.begin());
    for (int a = 0; a < axes; ++a) {
        if (a == real_axis) continue;
        const AxisTree<double>& tree = net64.trees[a];
        const double* terms = &tree.terms[size_t(tree.order[tree.begin[node[a]]]) * net64.width];
        for (int n = 0; n < net32.neurons; ++n) line_terms[n] += terms[n];
    }
    const AxisSpec& real = spec.axes[real_axis];
    const AxisTree<float>& tree = net32.trees[real_axis];
    trace.load_line(lane, line_terms.data(), edge(real, tree.begin[node[real_axis]]),
                    edge(real, tree.end[node[real_axis]]));
}

}  // namespace FETA_ISA
}  // namespace feta

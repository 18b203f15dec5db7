// Expansion of a search: the step that tallies and `find` repeat until the nodes are decided.
#pragma once
#include "search_points.hpp"
#include "zonotope_backward.hpp"
#include "zonotope_forward.hpp"

namespace feta {
namespace FETA_ISA {

inline int Search::decide_root(Outcome& out) {
    out.bounded_nodes = 1;
    const int root_decision = decide(spec.rule, root(), mode.center, mode.half);
    if (root_decision != undecided) {
        out.counts[size_t(root_decision)] += total;
        return root_decision;
    }
    std::fill(ids.begin(), ids.end(), 0);
    frontier.push(ids.data(), 0.0);
    return undecided;
}

// Return the priority of a node: in a tally, nodes that are almost decided come first; in
// `find`, nodes that may get furthest to the other side of the threshold or out of the band.
inline double Search::key_of(const NodeScores<float>& node) const {
    double key = 0;
    if (spec.rule.kind == RuleKind::threshold) {
        const double distance = node.value(0) - spec.rule.value;
        const bool reference_above = (mode.reference == 1) == spec.rule.above;
        if (mode.reference == undecided)
            key = std::abs(distance) / (node.radius(0) + 1e-300);
        else
            key = (reference_above ? -distance : distance) + node.radius(0);
    }
    if (spec.rule.kind == RuleKind::tolerance)
        key = std::abs(node.value(0) - mode.center) + node.radius(0);
    return key == key ? key : 0.0;
}

// Expand the first node: score its counterparts if it is small, otherwise split and bound it.
inline void Search::expand(Outcome& out, const Limits& limits) {
    if (count_of(frontier.first()) <= leaf_points) {
        score_leaves(-std::numeric_limits<double>::infinity());
        decide_points(out);
        return;
    }
    pop_first();
    // Bounding has not paid off so far.
    if (limits.nodes && out.bounded_nodes >= limits.nodes) {
        enumerate(out, limits);
        return;
    }
    const int n_children = split();
    out.bounded_nodes += uint64_t(n_children);
    const bool bound_backward =
        spec.rule.kind == RuleKind::threshold && count_of(children.data()) > leaf_points;
    if (!bound_backward) {
        zonotope.bound_nodes<false>(roots.center(person), roots.box(person), children.data(),
                                    n_children);
        for (int l = 0; l < n_children && !out.has_match; ++l)
            if (!count_node(out, l)) push_node(l);
        return;
    }
    zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                               n_children);
    int n_undecided = 0, undecided_lanes[lanes];
    double keys[lanes];
    for (int l = 0; l < n_children && !out.has_match; ++l)
        if (!count_node(out, l)) {
            keys[n_undecided] = key_of(node(l));
            undecided_lanes[n_undecided++] = l;
        }
    if (n_undecided == 0 || out.has_match ||
        (mode.majority_only && lead_is_final(out.counts, total)))
        return;
    zonotope.tighten(zonotope.sides(spec.rule.value));
    for (int k = 0; k < n_undecided && !out.has_match; ++k)
        if (!count_node(out, undecided_lanes[k]))
            frontier.push(&children[size_t(undecided_lanes[k]) * axes], keys[k]);
}

// Count the counterparts of a bounded node if it is decided; return whether it is.
inline bool Search::count_node(Outcome& out, int lane) {
    const int decision = decide(spec.rule, node(lane), mode.center, mode.half);
    if (decision == undecided) return false;
    const int32_t* child = &children[size_t(lane) * axes];
    out.counts[size_t(decision)] += count_of(child);
    if (mode.reference != undecided && decision != mode.reference) {
        for (int a = 0; a < axes; ++a)
            coordinates[a] = net32.trees[a].order[net32.trees[a].begin[child[a]]];
        record_match(out, assignment_id_of(coordinates.data()));
    }
    return true;
}

// Score all counterparts of the node in `ids` in batches, without bounds.
inline void Search::enumerate(Outcome& out, const Limits& limits) {
    stack.assign(ids.begin(), ids.end());
    points32.clear();
    while (!stack.empty() && !out.has_match) {
        std::copy(stack.end() - axes, stack.end(), ids.begin());
        stack.resize(stack.size() - size_t(axes));
        const uint64_t count = count_of(ids.data());
        if (count > max_points) {
            push_halves();
            continue;
        }
        if (points32.count() + int(count) > max_points) {
            if (out_of_budget(out, limits)) return;
            points32.run();
            decide_points(out);
            points32.clear();
        }
        points32.add(roots.center(person), ids.data(), int(count));
    }
    if (points32.count() && !out.has_match) {
        points32.run();
        decide_points(out);
    }
}

}  // namespace FETA_ISA
}  // namespace feta

// Bounds of nodes and scores of points, as a search computes them, for tests of the error bounds.
#pragma once
#include "search_majority.hpp"

namespace feta {
namespace FETA_ISA {

inline void Search::bound_and_score(const NodesAndPoints& query, NodeBounds& bounds) {
    bounds.outputs = size_t(outputs);
    for (size_t n = 0; n < query.n_nodes; ++n) {
        // With `Backward`, and again without: both must hold.
        const int32_t* node_ids = query.nodes + n * size_t(axes);
        zonotope.bound_nodes<true>(roots.center(person), roots.box(person), node_ids, 1);
        const bool single = zonotope.single_output() && !net32.layers.empty();
        if (single && real_axis < 0 && count_of(node_ids) <= Forms::most_counted) {
            forms.start(roots.center(person), roots.box(person));
            bounds.below.push_back(decide_by_form(node_ids, 1.0f, bounds.not_below));
            bounds.above.push_back(decide_by_form(node_ids, -1.0f, bounds.not_above));
        }
        zonotope.tighten(broadcast(1.0f));
        zonotope.tighten(broadcast(-1.0f));
        if (single) {
            bounds.backward_low.push_back(zonotope.low()[0]);
            bounds.backward_high.push_back(zonotope.high()[0]);
        }
        zonotope.bound_nodes<false>(roots.center(person), roots.box(person), node_ids, 1);
        const std::vector<double> no_errors(size_t(outputs), 0.0);
        const NodeScores<float> scores{zonotope, 0, no_errors.data(), 0.0};
        for (int o = 0; o < outputs; ++o) {
            bounds.low.push_back(scores.value(o) - scores.radius(o));
            bounds.high.push_back(scores.value(o) + scores.radius(o));
        }
    }
    bounds.source_errors.assign(roots.source_rounding(person),
                                roots.source_rounding(person) + outputs);
    bounds.errors32.assign(roots.kernel_errors(person), roots.kernel_errors(person) + outputs);
    bounds.errors64.assign(error64(), error64() + outputs);
    for (size_t p = 0; p < query.n_points; ++p) {
        const int32_t* point = query.points + p * size_t(axes);
        points32.clear();
        points32.add_listed(roots.center(person), point);
        points32.run();
        score64(point);
        for (int o = 0; o < outputs; ++o) {
            bounds.scores32.push_back(points32.scores(o)[0]);
            bounds.scores64.push_back(points64.scores(o)[0]);
        }
    }
}

inline uint64_t Search::decide_by_form(const int32_t* node_ids, float sign,
                                       std::vector<std::vector<uint64_t>>& open) {
    forms.take(zonotope, sign, spec.rule.value, 0.0);
    const uint64_t decided = forms.count(0, node_ids);
    std::vector<int32_t> listed;
    forms.list(node_ids, listed);
    std::vector<uint64_t> assignment_ids;
    for (size_t at = 0; at < listed.size(); at += size_t(axes))
        assignment_ids.push_back(assignment_id_of(&listed[at]));
    open.push_back(std::move(assignment_ids));
    return decided;
}

}  // namespace FETA_ISA
}  // namespace feta

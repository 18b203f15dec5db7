// Worst: a search for the counterparts with the largest objective.
#pragma once
#include "search_points.hpp"
#include "zonotope_backward.hpp"
#include "zonotope_forward.hpp"

namespace feta {
namespace FETA_ISA {

// `worst` also bounds nodes of at least this many counterparts backward; in smaller ones that gains
// little. A tally does so only for nodes that are too large to be scored (both measured).
constexpr uint64_t min_points_to_tighten = 32;

inline void Search::worst(Outcome& out, const Objective& objective, double floor, bool approximate,
                          const Limits& limits) {
    start(out, Mode{});
    Cutoff cutoff{floor, floor,
                  approximate ? 8 * objective.error(roots.kernel_errors(person)) : 0.0};
    std::fill(ids.begin(), ids.end(), 0);
    frontier.push(ids.data(), objective.high(roots.bounds(), person));
    // The first key is the largest: once the cutoff excludes it, it excludes all nodes.
    while (!frontier.empty() && cutoff.admits(frontier.key())) {
        if (out_of_budget(out, limits)) break;
        if (count_of(frontier.first()) <= leaf_points) {
            score_leaves(cutoff.best);
            collect_candidates(out, objective, cutoff);
            continue;
        }
        pop_first();
        const int n_children = split();
        out.bounded_nodes += uint64_t(n_children);
        if (count_of(children.data()) >= min_points_to_tighten) {
            zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                                       n_children);
            for (const float sign : {1.0f, -1.0f})
                if (objective.increases_with(sign)) zonotope.tighten(broadcast(sign));
        } else
            zonotope.bound_nodes<false>(roots.center(person), roots.box(person), children.data(),
                                        n_children);
        for (int l = 0; l < n_children; ++l) {
            const double high = objective.high(zonotope, l);
            if (cutoff.admits(high)) frontier.push(&children[size_t(l) * axes], high);
        }
    }
    for (const auto& [assignment_id, high] : candidates)
        if (!(high < cutoff.best)) out.undecided_ids.push_back(assignment_id);
    std::sort(out.undecided_ids.begin(), out.undecided_ids.end());
    if (out.undecided_ids.size() == 1) {  // a single candidate is the worst
        record_match(out, out.undecided_ids[0]);
        out.undecided_ids.clear();
    }
}

// Update the cutoff from the scored points, and keep those that may be the worst.
inline void Search::collect_candidates(Outcome& out, const Objective& objective, Cutoff& cutoff) {
    out.scored_points += uint64_t(points32.count());
    const double* error = roots.kernel_errors(person);
    for (int p = 0; p < points32.count(); ++p) {
        ranges[size_t(p)] = objective.range(points32, p, error);
        if (cutoff.tolerance == 0) cutoff.best = std::max(cutoff.best, ranges[size_t(p)].first);
    }
    for (int p = 0; p < points32.count(); ++p) {
        if (!cutoff.admits(ranges[size_t(p)].second)) continue;
        points32.coordinates(p, coordinates.data());
        score64(coordinates.data());
        const auto [low, high] = objective.range(points64, 0, error64());
        cutoff.best = std::max(cutoff.best, low);
        if (!(high < cutoff.best))
            candidates.emplace_back(assignment_id_of(coordinates.data()), high);
    }
    if (candidates.size() > 4096 && candidates.size() > 2 * candidates_after_pruning) {
        const auto beaten = [&](const auto& candidate) { return candidate.second < cutoff.best; };
        candidates.erase(std::remove_if(candidates.begin(), candidates.end(), beaten),
                         candidates.end());
        candidates_after_pruning = candidates.size();
    }
}

}  // namespace FETA_ISA
}  // namespace feta

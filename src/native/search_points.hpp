// Points of a search: counterparts of small nodes, scored and decided one by one.
#pragma once
#include "search_nodes.hpp"

namespace feta {
namespace FETA_ISA {

// Nodes of at most this many counterparts are scored, not split; must not exceed `max_points`.
constexpr int leaf_points = 64;

// Score the first nodes of the frontier together, as long as they are small and fit.
inline void Search::score_leaves(double min_key) {
    points32.clear();
    while (!frontier.empty() && !(frontier.key() < min_key)) {
        const uint64_t count = count_of(frontier.first());
        if (count > leaf_points || points32.count() + int(count) > max_points) break;
        points32.add(roots.center(person), frontier.first(), int(count));
        frontier.pop();
    }
    points32.run();
}

// Decide a scored point in float32.
inline int Search::decide_point32(int point) const {
    const PointScores<float> scores{points32, point, roots.kernel_errors(person),
                                    roots.source_rounding(person), source_error};
    return decide(spec.rule, scores, mode.center, mode.half);
}

// Decide all scored points: in float32, the rest together in float64; the others remain undecided.
inline void Search::decide_points(Outcome& out) {
    const int count = points32.count();
    out.scored_points += uint64_t(count);
    if (mode.reference == undecided && spec.rule.kind == RuleKind::threshold &&
        count_decided_points(out))
        return;
    int decisions[max_points], place64[max_points];
    points64.clear();
    for (int p = 0; p < count; ++p) {
        decisions[p] = decide_point32(p);
        if (decisions[p] != undecided) continue;
        place64[p] = points64.count();
        points32.coordinates(p, coordinates.data());
        points64.add_listed(roots.center64(person), coordinates.data());
    }
    if (points64.count()) points64.run();
    for (int p = 0; p < count; ++p) {
        const int decision =
            decisions[p] == undecided ? decide_point64(place64[p], out) : decisions[p];
        const bool match = mode.reference != undecided && decision != mode.reference;
        if (decision != undecided) {
            ++out.counts[size_t(decision)];
            if (!match) continue;
        }
        points32.coordinates(p, coordinates.data());
        const uint64_t id = assignment_id_of(coordinates.data());
        if (decision != undecided) return record_match(out, id);
        out.undecided_ids.push_back(id);
    }
}

// Count the points on each side of the threshold at once. Return false, and count none, if one
// is too close to the threshold.
inline bool Search::count_decided_points(Outcome& out) const {
    const double radius = roots.kernel_errors(person)[0] + roots.source_rounding(person)[0] +
                          source_error + 4 * Format<float>::unit * std::abs(spec.rule.value);
    const float threshold32 = float(spec.rule.value), radius32 = float(radius * to_float32);
    if (!(radius32 < std::numeric_limits<float>::max())) return false;
    const float* scores = points32.scores(0);
    int above = 0, below = 0;
    for (int p = 0; p < points32.count(); ++p) {
        // The second term covers the rounding of the difference.
        const float distance = scores[p] - threshold32,
                    limit = radius32 + difference32 * std::abs(distance);
        above += distance > limit;
        below += -distance > limit;
    }
    if (above + below != points32.count()) return false;
    out.counts[spec.rule.above] += uint64_t(above);
    out.counts[!spec.rule.above] += uint64_t(below);
    return true;
}

// Return the error bounds of the outputs in float64, computed on first use.
inline const double* Search::error64() {
    if (!errors64_ready) roots.point_errors64(person, errors64);
    errors64_ready = true;
    return errors64.back().data();
}

inline void Search::score64(const int32_t* point_coordinates) {
    points64.clear();
    points64.add_listed(roots.center64(person), point_coordinates);
    points64.run();
}

// Decide a counterpart that was scored in float64. If the decision does not hold in the source's
// arithmetic, it is not runtime-safe.
inline int Search::decide_point64(int point, Outcome& out) {
    const PointScores<double> with_source{points64, point, error64(), roots.source_rounding(person),
                                          source_error};
    const int decision = decide(spec.rule, with_source, mode.center, mode.half);
    if (decision != undecided) return decision;
    out.runtime_safe = false;
    const PointScores<double> kernel_only{points64, point, error64(), nullptr, 0.0};
    return decide(spec.rule, kernel_only, mode.center, mode.half);
}

}  // namespace FETA_ISA
}  // namespace feta

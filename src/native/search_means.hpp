// Means: a search that decides on which side of a cut-off the mean of the counterparts is.
#pragma once
#include "search_points.hpp"

namespace feta {
namespace FETA_ISA {

// Decide in float32, then in float64. Return 1 or 0, or `undecided` if only exact arithmetic can.
inline int Search::decide_mean(const IsaMeanVote& vote) {
    const Zonotope<float>& bounds = roots.bounds();
    Range all{-HUGE_VAL, HUGE_VAL};  // of every counterpart's contribution
    if (bounds.single_output()) {
        const double low = bounds.low()[person], high = bounds.high()[person];
        all = {vote.contribution(low, 0).low, vote.contribution(high, 0).high};
    }
    const int decision =
        sum_mean(vote, points32, roots.center(person), roots.kernel_errors(person)[0], all);
    if (decision != undecided) return decision;
    return sum_mean(vote, points64, roots.center64(person), error64()[0], all);
}

// Add the contributions in blocks, until the others cannot change the decision.
template <class T> int Search::sum_mean(const IsaMeanVote& vote, Points<T>& points, const T* center,
                                        double error, Range all) {
    Range sum{0, 0};
    double magnitude = 0, rest = vote.all_votes();
    for (size_t from = 0;; from += max_points) {
        const double size = rest == 0 ? 0 : rest * std::max(std::abs(all.low), std::abs(all.high));
        const Range open = rest == 0 ? Range{0, 0} : Range{rest * all.low, rest * all.high};
        const int decision = vote.decide(vote.rounded({sum.low + open.low, sum.high + open.high},
                                                      magnitude + size, vote.count() + 2));
        if (decision != undecided || rest == 0) return decision;
        const size_t count = std::min<size_t>(max_points, vote.count() - from);
        score_listed(vote, points, center, from, count);
        for (size_t p = 0; p < count; ++p) {
            const double votes = vote.vote(from + p);
            const Range part = vote.contribution(double(points.scores(0)[p]), error);
            sum.low += votes * part.low;
            sum.high += votes * part.high;
            magnitude += votes * std::max(std::abs(part.low), std::abs(part.high));
            rest -= votes;
        }
    }
}

// Score a block of the counterparts that vote.
template <class T> void Search::score_listed(const IsaMeanVote& vote, Points<T>& points,
                                             const T* center, size_t from, size_t count) {
    points.clear();
    for (size_t p = from; p < from + count; ++p) {
        if constexpr (std::is_same_v<T, float>)
            if (const float* terms = vote.terms_of(p)) {
                points.add_moved(center, terms);
                continue;
            }
        points.add_listed(center, vote.point(p));
    }
    points.run();
}

}  // namespace FETA_ISA
}  // namespace feta

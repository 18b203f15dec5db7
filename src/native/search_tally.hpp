// Tally: a search that counts the classes of the counterparts.
#pragma once
#include "search_majority.hpp"

namespace feta {
namespace FETA_ISA {

inline void Search::tally(Outcome& out, bool majority, const Limits& limits) {
    if (majority && counts_by_forms()) return tally_majority(out, limits);
    Mode asked;
    asked.majority_only = majority;
    start(out, asked);
    if (decide_root(out) != undecided) return;
    while (!frontier.empty() && !(majority && lead_is_final(out.counts, total))) {
        if (out_of_budget(out, limits)) return;
        expand(out, limits);
    }
}

inline void Search::tally_listed(Outcome& out, const uint64_t* assignment_ids,
                                 const uint64_t* votes, size_t n_listed, uint64_t total_votes,
                                 bool majority, const Limits& limits) {
    start(out, Mode{});
    const int root_decision = decide(spec.rule, root(), mode.center, mode.half);
    if (root_decision != undecided) {
        out.counts[size_t(root_decision)] += total_votes;
        return;
    }
    for (size_t from = 0; from < n_listed && !(majority && lead_is_final(out.counts, total_votes));
         from += max_points) {
        if (out_of_budget(out, limits)) return;
        const int count = int(std::min<size_t>(max_points, n_listed - from));
        points32.clear();
        for (int p = 0; p < count; ++p) {
            set_coordinates(assignment_ids[from + size_t(p)]);
            points32.add_listed(roots.center(person), coordinates.data());
        }
        points32.run();
        out.scored_points += uint64_t(count);
        for (int p = 0; p < count; ++p) {
            int decision = decide_point32(p);
            if (decision == undecided) {
                set_coordinates(assignment_ids[from + size_t(p)]);
                score64(coordinates.data());
                decision = decide_point64(0, out);
            }
            if (decision == undecided)
                out.undecided_ids.push_back(assignment_ids[from + size_t(p)]);
            else
                out.counts[size_t(decision)] += votes[from + size_t(p)];
        }
    }
}

inline bool Search::winner_is_certain(const Outcome& out, uint64_t counted) const {
    return counted == total || lead_is_final(out.counts, total);
}

}  // namespace FETA_ISA
}  // namespace feta

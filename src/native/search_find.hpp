// Find: a search for one counterpart that gets a different decision.
#pragma once
#include "search_expand.hpp"

namespace feta {
namespace FETA_ISA {

inline void Search::find(Outcome& out, int reference_class, double center, double half,
                         const Limits& limits) {
    Mode asked;
    asked.reference = reference_class;
    asked.center = center;
    asked.half = half;
    start(out, asked);
    const int root_decision = decide_root(out);
    if (root_decision != undecided && root_decision != reference_class) record_match(out, 0);
    while (!frontier.empty() && !out.has_match) {
        if (out_of_budget(out, limits)) break;
        expand(out, limits);
    }
}

}  // namespace FETA_ISA
}  // namespace feta

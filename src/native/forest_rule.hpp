// Comparison: the decision of a cell by its sums. With exact sums, ties are decided, too.
#pragma once
#include <algorithm>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

// At the edges of a band, whose center may be rounded, and for rounded sums near the threshold.
constexpr int unknown = -1;

// The band of a regression, in units: sums inside, sums surely not outside, and sums that the
// runtime surely puts inside, too.
template <class Int> struct Band {
    Int low = 0, high = 0, outer_low = 0, outer_high = 0, sure_low = 0, sure_high = 0;
};

struct Decision {
    int number = unknown;
    bool sure = false;  // whether the error bound of the library's sum proves that it agrees
};

template <class Int> class Comparison {
  public:
    // Sums may be rounded: the exact ones lie in [sum · 2^shift, (sum + slack) · 2^shift].
    Comparison(const ForestSpec& from, int shift, Int slack)
        : rule(from.rule), least_above(fit(-(-from.least_above >> shift))),
          most_below(fit((from.least_above - 1) >> shift) - slack),
          surely_below(fit(from.surely_below >> shift) - slack),
          surely_above(fit(-(-from.surely_above >> shift))), sure_gap(fit(from.sure_gap)) {}

    Band<Int> band;

    bool has_threshold() const { return rule.kind == RuleKind::threshold; }

    // Decide a cell; the sum of output k is sums[k * step].
    Decision decide(const Int* sums, size_t step) const {
        return has_classes() ? decide_classes(sums, step) : decide_score(sums[0]);
    }

    // Decide all sums between two, by a threshold or a band.
    Decision decide_range(Int low, Int high) const {
        const Decision lower = decide_score(low), upper = decide_score(high);
        // A band is convex, and so is each side of a threshold, but not the outside of a band.
        if (lower.number != upper.number || (!has_threshold() && lower.number != 0)) return {};
        return {lower.number, lower.sure && upper.sure};
    }

    // Count the values of a row by the side of the threshold.
    void count(const Int* sums, size_t cells, const uint64_t* sizes, uint64_t& below,
               uint64_t& above) const {
        uint64_t n_below = 0, n_above = 0;
        for (size_t j = 0; j < cells; ++j) {
            n_below += sums[j] <= most_below ? sizes[j] : 0;
            n_above += sums[j] >= least_above ? sizes[j] : 0;
        }
        below = n_below;
        above = n_above;
    }

    Int largest_below() const { return most_below; }
    Int smallest_above() const { return least_above; }
    int above_number() const { return rule.above; }

  private:
    RuleSpec rule;
    Int least_above, most_below, surely_below, surely_above, sure_gap;

    // All sums are smaller than the limit, so larger numbers compare in the same way.
    static Int fit(Wide value) {
        const Wide limit = Wide(1) << (8 * sizeof(Int) - 2);
        return Int(std::clamp(value, -limit, limit));
    }

    bool has_classes() const {
        return rule.kind == RuleKind::argmax || rule.kind == RuleKind::one_vs_rest;
    }

    Decision decide_score(Int sum) const {
        if (has_threshold()) {
            if (sum < least_above && sum > most_below) return {};
            return {(sum >= least_above) == rule.above, sum > surely_above || sum < surely_below};
        }
        if (sum >= band.low && sum <= band.high)
            return {0, sum >= band.sure_low && sum <= band.sure_high};
        return {sum < band.outer_low || sum > band.outer_high ? 1 : unknown, false};
    }

    // The first class with the largest sum wins.
    Decision decide_classes(const Int* sums, size_t step) const {
        int best = 0;
        for (int k = 1; k < rule.outputs; ++k)
            if (sums[size_t(k) * step] > sums[size_t(best) * step]) best = k;
        const Int largest = sums[size_t(best) * step];
        if (rule.kind == RuleKind::argmax || best == rule.chosen) {
            bool sure = true;
            for (int k = 0; k < rule.outputs; ++k)
                if (k != best) sure &= largest - sums[size_t(k) * step] > sure_gap;
            return {rule.kind == RuleKind::argmax ? best : 1, sure};
        }
        return {0, largest - sums[size_t(rule.chosen) * step] > sure_gap};
    }
};

}  // namespace forest
}  // namespace feta

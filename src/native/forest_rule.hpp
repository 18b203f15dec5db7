// Comparison: the decision of a cell by its exact sums. Ties are decided, too.
#pragma once
#include "forest_spec.hpp"

namespace feta {
namespace forest {

constexpr int unknown = -1;  // only at the edges of a band, whose center may be rounded

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
    explicit Comparison(const ForestSpec& from)
        : rule(from.rule), least_above(Int(from.least_above)),
          surely_below(Int(from.surely_below)), surely_above(Int(from.surely_above)),
          sure_gap(Int(from.sure_gap)) {}

    Band<Int> band;

    // Decide a cell; the sum of output k is sums[k * step].
    Decision decide(const Int* sums, size_t step) const {
        switch (rule.kind) {
            case RuleKind::threshold: {
                const Int sum = sums[0];
                return {(sum >= least_above) == rule.above, sum > surely_above || sum < surely_below};
            }
            case RuleKind::tolerance: {
                const Int sum = sums[0];
                if (sum >= band.low && sum <= band.high)
                    return {0, sum >= band.sure_low && sum <= band.sure_high};
                return {sum < band.outer_low || sum > band.outer_high ? 1 : unknown, false};
            }
            case RuleKind::argmax:
            case RuleKind::one_vs_rest: break;
        }
        return decide_classes(sums, step);
    }

  private:
    RuleSpec rule;
    Int least_above, surely_below, surely_above, sure_gap;

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

// Judge: the class of a point or of a whole node, or open where bounds leave it so.
#pragma once
#include "spec.hpp"

namespace feta {
namespace FETA_ISA {

constexpr int open_class = -1;

// Outputs known to within some reach, alone and pairwise: of a point or of a node.
template <class Outputs>
int judge(const RuleSpec& rule, const Outputs& out, double center, double half) {
    switch (rule.kind) {
        case RuleKind::threshold: {
            const double distance = out.value(0) - rule.value, reach = out.reach(0);
            if (distance > reach) return rule.above;
            if (-distance > reach) return !rule.above;
            return open_class;
        }
        case RuleKind::tolerance: {
            // If every counterpart lies in one band center ± half, no two are farther apart than 2 · half.
            const double distance = out.value(0) - center;
            const double reach =
                out.reach(0) + 0x1p-50 * (std::abs(out.value(0)) + std::abs(center) + half);
            if (std::abs(distance) + reach < half) return 0;
            if (std::abs(distance) - reach > half) return 1;
            return open_class;
        }
        case RuleKind::argmax: {
            int best = 0;
            for (int k = 1; k < rule.outputs; ++k)
                if (out.value(k) > out.value(best)) best = k;
            for (int k = 0; k < rule.outputs; ++k)
                if (k != best && !(out.value(best) - out.value(k) > out.reach(best, k)))
                    return open_class;
            return best;
        }
        case RuleKind::one_vs_rest: {
            bool won = true;
            for (int k = 0; k < rule.outputs; ++k) {
                if (k == rule.chosen) continue;
                const double lead = out.value(rule.chosen) - out.value(k),
                             reach = out.reach(rule.chosen, k);
                if (-lead > reach) return 0;
                won &= lead > reach;
            }
            return won ? 1 : open_class;
        }
    }
    return open_class;
}

}  // namespace FETA_ISA
}  // namespace feta

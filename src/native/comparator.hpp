// Comparator: compares scores with the rule. All points within the error bounds must get the same
// class, or the result is `undecided`.
#pragma once
#include "arithmetic.hpp"
#include "spec.hpp"

namespace feta {
namespace FETA_ISA {

constexpr int undecided = -1;

// Return the class of a point or of a whole node. `Scores` has a value and an error bound (radius)
// per output, and an error bound per pair of outputs. NaN fails every comparison: undecided.
// Only a tolerance uses the band center ± half.
template <class Scores>
int decide(const RuleSpec& rule, const Scores& scores, double center, double half) {
    switch (rule.kind) {
        case RuleKind::threshold: {
            const double distance = scores.value(0) - rule.value, radius = scores.radius(0);
            if (distance > radius) return rule.above;
            if (-distance > radius) return !rule.above;
            return undecided;
        }
        case RuleKind::tolerance: {
            // If all counterparts lie in center ± half, no two differ by more than 2 · half.
            const double distance = scores.value(0) - center;
            const double radius = scores.radius(0) + difference64 * (std::abs(scores.value(0)) +
                                                                     std::abs(center) + half);
            if (std::abs(distance) + radius < half) return 0;
            if (std::abs(distance) - radius > half) return 1;
            return undecided;
        }
        case RuleKind::argmax: {
            int best = 0;
            for (int k = 1; k < rule.outputs; ++k)
                if (scores.value(k) > scores.value(best)) best = k;
            for (int k = 0; k < rule.outputs; ++k)
                if (k != best && !(scores.value(best) - scores.value(k) > scores.radius(best, k)))
                    return undecided;
            return best;
        }
        case RuleKind::one_vs_rest: {
            bool wins = true;
            for (int k = 0; k < rule.outputs; ++k) {
                if (k == rule.chosen) continue;
                const double gap = scores.value(rule.chosen) - scores.value(k),
                             radius = scores.radius(rule.chosen, k);
                if (-gap > radius) return 0;
                wins &= gap > radius;
            }
            return wins ? 1 : undecided;
        }
    }
    return undecided;
}

}  // namespace FETA_ISA
}  // namespace feta

// Replayed: the library's own rounded sum for one counterpart, in its order and format.
#pragma once
#include <cmath>

#include "forest_boxes.hpp"

namespace feta {
namespace forest {

class Replayed {
  public:
    explicit Replayed(const ForestSpec& from)
        : spec(from), scores(size_t(from.outputs)), sums(size_t(from.sums)) {}

    const ForestSpec& spec;
    std::vector<double> scores;  // by output

    void run(const Boxes& boxes, const int32_t* groups) {
        leaves.clear();
        for (const int32_t root : spec.roots) leaves.push_back(boxes.leaf(root, groups));
        for (size_t k = 0; k < sums.size(); ++k)
            sums[k] = spec.replay.single ? double(add<float>(k)) : add<double>(k);
        for (size_t o = 0; o < scores.size(); ++o) {
            scores[o] = 0;
            for (size_t k = 0; k < sums.size(); ++k)
                scores[o] += spec.replay.directions[o * sums.size() + k] * sums[k];
        }
    }

    // Return whether the library surely makes the same decision; `exact` are the true scores,
    // rounded to float64. `center` and `half` describe a band.
    bool agrees(const std::vector<double>& exact, double center, double half) const {
        const RuleSpec& rule = spec.rule;
        const auto error = [&](int k) {
            const double replayed = scores[size_t(k)], value = exact[size_t(k)];
            return std::abs(replayed - value) + spec.source_error +
                   0x1p-50 * (std::abs(replayed) + std::abs(value)) + 0x1p-1000;
        };
        if (rule.kind == RuleKind::threshold)
            return std::abs(exact[0] - rule.value) > error(0) + 0x1p-50 * std::abs(rule.value);
        if (rule.kind == RuleKind::tolerance)
            return std::abs(exact[0] - center) + error(0) + 0x1p-50 * (std::abs(center) + half) <
                   half;
        const int best = int(std::max_element(exact.begin(), exact.end()) - exact.begin());
        const auto leads = [&](int k) {
            return exact[size_t(best)] - exact[size_t(k)] > error(best) + error(k);
        };
        if (rule.kind == RuleKind::one_vs_rest && best != rule.chosen) return leads(rule.chosen);
        for (int k = 0; k < rule.outputs; ++k)
            if (k != best && !leads(k)) return false;
        return true;
    }

  private:
    std::vector<double> sums;
    std::vector<int32_t> leaves;  // by tree

    template <class Real> Real add(size_t k) const {
        const Replay& replay = spec.replay;
        const Real start = Real(replay.start[k]);
        Real total = start;
        for (size_t t = 0; t < leaves.size(); ++t) {
            const Real value = Real(replay.values[size_t(leaves[t]) * sums.size() + k]);
            if (replay.weights.empty())
                total = total + value;
            else {
                const Real rounded = (start + value) - start;
                const Real product = rounded * Real(replay.weights[t]);
                total = total + product;
            }
        }
        // Only the library's own division is in its format.
        return replay.divide ? total / Real(leaves.size()) : Real(total);
    }

  public:
    // Divide by the denominator where the library does not.
    void divide() {
        if (spec.replay.divide) return;
        for (double& score : scores) score /= spec.replay.denominator;
    }
};

}  // namespace forest
}  // namespace feta

// Replayed: the library's own rounded sum for one counterpart, in its order and format.
#pragma once
#include <cmath>

#include "arithmetic.hpp"
#include "forest_boxes.hpp"

namespace feta {
namespace forest {

class Replayed {
  public:
    explicit Replayed(const ForestSpec& from)
        : spec(from), scores(size_t(from.outputs)), errors(scores.size()), sums(size_t(from.sums)),
          sizes(sums.size()) {}

    // Compute the library's scores of a counterpart, and error bounds of its scores in float64.
    void run(Boxes& boxes, const int32_t* groups) {
        const Replay& replay = spec.replay;
        leaves.clear();
        for (size_t tree = 0; tree < spec.roots.size(); ++tree)
            leaves.push_back(boxes.leaf(tree, groups));
        for (size_t k = 0; k < sums.size(); ++k) {
            sums[k] = replay.single ? double(add<float>(k)) : add<double>(k);
            if (!replay.divide) sums[k] /= replay.denominator;
            sizes[k] = replay.base_sizes[k];
            for (const int32_t leaf : leaves)
                sizes[k] += replay.sizes[size_t(leaf) * sums.size() + k];
        }
        for (size_t o = 0; o < scores.size(); ++o) {
            scores[o] = errors[o] = 0;
            for (size_t k = 0; k < sums.size(); ++k) {
                const double direction = replay.directions[o * sums.size() + k];
                scores[o] += direction * sums[k];
                errors[o] += std::abs(direction) * sizes[k];
            }
            errors[o] *= replay.relative_error / replay.denominator;
        }
    }

    // Return whether the library surely makes the same decision; `exact` are the true scores,
    // rounded to float64. `center` and `half` describe a band.
    bool agrees(const std::vector<double>& exact, double center, double half) const {
        const RuleSpec& rule = spec.rule;
        const auto error = [&](int k) {
            const double replayed = scores[size_t(k)], value = exact[size_t(k)];
            return std::abs(replayed - value) + spec.source_error + errors[size_t(k)] +
                   difference64 * (std::abs(replayed) + std::abs(value)) + floor64;
        };
        if (rule.kind == RuleKind::threshold)
            return std::abs(exact[0] - rule.value) > error(0) + difference64 * std::abs(rule.value);
        if (rule.kind == RuleKind::tolerance)
            return std::abs(exact[0] - center) + error(0) +
                       difference64 * (std::abs(center) + half) <
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
    const ForestSpec& spec;
    std::vector<double> scores, errors;  // by output
    std::vector<double> sums, sizes;
    std::vector<int32_t> leaves;  // by tree

    template <class Real> Real add(size_t k) const {
        const Replay& replay = spec.replay;
        Real total = Real(replay.start[k]);
        for (const int32_t leaf : leaves)
            total = total + Real(replay.terms[size_t(leaf) * sums.size() + k]);
        return replay.divide ? total / Real(replay.denominator) : total;
    }
};

}  // namespace forest
}  // namespace feta

// MeanVote: the counterparts that vote by a mean, what each contributes, and the sum that decides.
#pragma once
#include <algorithm>
#include <cmath>

#include "comparator.hpp"
#include "kernel.hpp"
#include "network.hpp"

namespace feta {
namespace FETA_ISA {

// Lower and upper bound of a number; both are NaN or infinite if nothing is known.
struct Range {
    double low, high;
};

// A step function of the score, ascending: the grade of the cell between two thresholds.
class Steps {
  public:
    Steps(const std::vector<double>& cuts, const std::vector<double>& values)
        : thresholds(cuts), grades(values) {
        if (thresholds.empty()) return;
        const double span = thresholds.back() - thresholds.front();
        factor = span > 0 && span < HUGE_VAL ? n_buckets / span : 0;
        starts.assign(n_buckets + 1, 0);
        for (const double threshold : thresholds) ++starts[bucket(threshold) + 1];
        for (size_t b = 0; b < n_buckets; ++b) starts[b + 1] += starts[b];
    }

    bool empty() const { return grades.empty(); }

    // Return bounds of the grade of a score within value ± radius.
    Range at(double value, double radius) const {
        const double low = value - radius, high = value + radius;
        if (!(low > -HUGE_VAL && high < HUGE_VAL)) return {grades.front(), grades.back()};
        size_t cell = cell_of(low);
        const double first = grades[cell];
        while (cell < thresholds.size() && thresholds[cell] <= high) ++cell;
        return {first, grades[cell]};
    }

  private:
    static constexpr size_t n_buckets = 4096;
    std::vector<double> thresholds, grades;
    double factor = 0;
    std::vector<size_t> starts;  // the thresholds in lower buckets

    // The bucket never decreases with the score, however the product is rounded. So thresholds in
    // lower buckets are below a score, and those in higher ones above.
    size_t bucket(double score) const {
        const double at = (score - thresholds.front()) * factor;
        if (!(at > 0)) return 0;
        return at < n_buckets - 1 ? size_t(at) : n_buckets - 1;
    }

    // Return the number of thresholds that a score reaches.
    size_t cell_of(double score) const {
        const size_t b = bucket(score);
        const auto begin = thresholds.begin();
        return size_t(std::upper_bound(begin + ptrdiff_t(starts[b]),
                                       begin + ptrdiff_t(starts[b + 1]), score) -
                      begin);
    }
};

class IsaMeanVote final : public MeanVote {
  public:
    IsaMeanVote(const MeanSpec& spec, const Network<double>& net)
        : steps(spec.thresholds, spec.grades), above(spec.above), edge(spec.edge),
          votes(spec.votes.begin(), spec.votes.end()), axes(size_t(net.axes)),
          width(size_t(padded<float>(net.neurons))) {
        for (const double vote : votes) total_votes += vote;
        coordinates.resize(votes.size() * axes);
        for (size_t p = 0; p < votes.size(); ++p) {
            uint64_t rest = spec.assignment_ids[p];
            for (size_t a = axes; a-- > 0;) {
                const uint64_t values = uint64_t(net.trees[a].values);
                coordinates[p * axes + a] = int32_t(rest % values);
                rest /= values;
            }
        }
        if (votes.size() * width <= max_terms) sum_terms(net);
    }

    size_t count() const { return votes.size(); }
    double vote(size_t p) const { return votes[p]; }
    double all_votes() const { return total_votes; }
    const int32_t* point(size_t p) const { return &coordinates[p * axes]; }

    // The sum of the sensitive terms in the first layer; null if they would take too much memory.
    const float* terms_of(size_t p) const { return terms.empty() ? nullptr : &terms[p * width]; }

    // Return bounds of the contribution of a counterpart with the score value ± error.
    Range contribution(double value, double error) const {
        // The other terms cover the rounding of value ± radius, and numbers flushed to zero.
        const double radius = error * few64 + difference64 * std::abs(value) + floor64;
        if (!steps.empty()) return steps.at(value, radius);
        return {value - radius, value + radius};
    }

    // Return 1 if every sum within the bounds is favorable, 0 if none is. NaN is undecided.
    int decide(Range sum) const {
        const bool favorable = above ? sum.low >= edge : sum.high <= edge;
        const bool unfavorable = above ? sum.high < edge : sum.low > edge;
        return favorable ? 1 : unfavorable ? 0 : undecided;
    }

    // Widen a sum of up to `n_terms` products for its rounding. Sums of grades are integers below
    // 2^53, which float64 holds exactly.
    Range rounded(Range sum, double magnitude, size_t n_terms) const {
        if (!steps.empty()) return sum;
        const double radius =
            gamma(Format<double>::unit, int(n_terms), kernel_extra_roundings) * magnitude +
            Format<double>::tiny * double(n_terms);
        return {sum.low - radius, sum.high + radius};
    }

  private:
    static constexpr size_t max_terms = size_t(1) << 23;  // 32 MB
    Steps steps;
    bool above;
    double edge, total_votes = 0;
    std::vector<double> votes;
    size_t axes, width;
    std::vector<int32_t> coordinates;  // (assignments, axes)
    Array<float> terms;                // (assignments, width)

    // Add in float64 and round once: fewer roundings than the kernel's error bound allows for.
    void sum_terms(const Network<double>& net) {
        terms.assign(votes.size() * width, 0.0f);
        for (size_t p = 0; p < votes.size(); ++p)
            for (size_t n = 0; n < size_t(net.neurons); ++n) {
                double sum = 0;
                for (size_t a = 0; a < axes; ++a)
                    sum += net.trees[a].terms[size_t(point(p)[a]) * size_t(net.width) + n];
                terms[p * width + n] = float(sum);
            }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

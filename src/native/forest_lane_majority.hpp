// LaneMajority: the majority of a person's counterparts by a threshold, from rounded sums of all
// cells. What rounding leaves undecided is counted elsewhere.
#pragma once
#include "forest_lane_plan.hpp"
#include "forest_sums.hpp"

namespace feta {
namespace forest {

// What all threads share: the plan, and the leaves with rounded values.
class LaneForest {
  public:
    struct RoundedLeaf {
        uint32_t box = 0, value = 0;
    };

    LaneForest(const Layout& layout, std::unique_ptr<LaneSums> with)
        : plan(layout), arithmetic(std::move(with)) {
        const size_t n_trees = layout.roots.size();
        usable = plan.usable && n_trees < size_t(1) << 20;
        if (!usable) return;
        const Sums<int32_t> rounded(layout, shift_to_fit(layout, sum_bits));
        base = uint32_t(rounded.base[0]);
        limits = {rounded.comparison.largest_below(), rounded.comparison.smallest_above()};
        above_number = size_t(rounded.comparison.above_number());
        for (size_t n = 0; n < layout.leaves.size(); ++n)
            leaves.push_back(
                {layout.leaves[n].box, uint32_t(rounded.leaves[size_t(layout.sources[n])])});
        n_boxes = layout.boxes.count();
        for (const Axis& axis : layout.spec.axes)
            total *= std::accumulate(axis.sizes.begin(), axis.sizes.end(), uint64_t(0));
    }

    LanePlan plan;
    std::unique_ptr<LaneSums> arithmetic;
    bool usable = false;
    std::vector<RoundedLeaf> leaves;
    uint32_t base = 0;
    LaneLimits limits;
    size_t above_number = 1, n_boxes = 0;
    uint64_t total = 1;  // counterparts

  private:
    // Sums and the slack of rounding stay below 2^30, the limit of `Comparison`.
    static constexpr int sum_bits = 29;
};

class LaneMajority {
  public:
    explicit LaneMajority(const LaneForest& from)
        : forest(from), plan(from.plan), boxes(from.n_boxes),
          base((plan.shape.rows + 1) * plan.shape.blocks),
          changes((plan.shape.rows + 1) * plan.shape.blocks), terms(plan.n_slices + 1),
          n_terms(plan.n_slices + 1, 0) {
        different.resize(from.n_boxes + 1);  // one is written before it is known to be new
        base_terms.resize(from.n_boxes + 1);
        for (size_t s = 0; s < terms.size(); ++s) terms[s].resize(plan.slice_terms[s] + 1);
    }

    // Count until one side has more than half of all counterparts. Return whether the majority is
    // certain; `reached` has one bit per leaf.
    bool decide(const std::vector<uint64_t>& reached, std::vector<uint64_t>& counts) {
        list_boxes(reached);
        divide();
        const LaneSums& with = *forest.arithmetic;
        std::fill(base.begin(), base.end(), LaneBlock{});
        for (size_t b = 0; b < plan.shape.blocks; ++b)
            for (uint32_t& lane : base[b].lanes) lane = forest.base;
        with.add(plan.shape, base_terms.data(), n_base_terms, base.data());
        with.accumulate(plan.shape, base.data());
        LaneSides sides;
        for (size_t s = 0; s < plan.n_slices; ++s) {
            const LaneSides own = count(s);
            sides.below += own.below * plan.slice_sizes[s];
            sides.above += own.above * plan.slice_sizes[s];
            if (2 * std::max(sides.below, sides.above) > forest.total) break;
        }
        counts[forest.above_number] = sides.above;
        counts[1 - forest.above_number] = sides.below;
        return sides.below + sides.above == forest.total ||
               2 * std::max(sides.below, sides.above) > forest.total;
    }

  private:
    const LaneForest& forest;
    const LanePlan& plan;
    struct Total {  // of the reached leaves of a box
        uint32_t epoch = 0, sum = 0;
    };
    std::vector<uint32_t> numbers;    // of reached leaves, ascending
    std::vector<uint32_t> different;  // boxes, each once
    std::vector<Total> boxes;
    uint32_t epoch = 0;
    size_t n_leaves = 0, n_different = 0, n_base_terms = 0;
    std::vector<LaneBlock> base, changes;
    std::vector<LaneTerm> base_terms;
    std::vector<std::vector<LaneTerm>> terms;  // by slice
    std::vector<uint32_t> n_terms;             // by slice

    LaneSides count(size_t slice) {
        const LaneSums& with = *forest.arithmetic;
        if (n_terms[slice] == 0) return with.count(plan.shape, base.data(), forest.limits);
        with.add(plan.shape, terms[slice].data(), n_terms[slice], changes.data());
        return with.count_changed(plan.shape, base.data(), changes.data(), forest.limits);
    }

    // Sum the leaves with the same box. No branch depends on whether a box is new, because nothing
    // predicts that.
    void list_boxes(const std::vector<uint64_t>& reached) {
        list_leaves(reached);
        if (++epoch == 0) {
            std::fill(boxes.begin(), boxes.end(), Total{});
            epoch = 1;
        }
        n_different = 0;
        for (size_t n = 0; n < n_leaves; ++n) {
            request(n);
            const auto [box, value] = forest.leaves[numbers[n]];
            Total& total = boxes[box];
            const uint32_t known = total.epoch == epoch;
            total = {epoch, value + (total.sum & (0 - known))};
            different[n_different] = box;
            n_different += 1 - known;
        }
    }

    // Request memory early: the leaf of a later place, and the box of one that is closer.
    void request(size_t n) const {
        constexpr size_t leaf_ahead = 32, box_ahead = 12;
        if (n + leaf_ahead >= n_leaves) return;
        __builtin_prefetch(&forest.leaves[numbers[n + leaf_ahead]]);
        const uint32_t box = forest.leaves[numbers[n + box_ahead]].box;
        __builtin_prefetch(&boxes[box]);
        __builtin_prefetch(&plan[box]);
    }

    void list_leaves(const std::vector<uint64_t>& reached) {
        constexpr size_t words = 16;
        n_leaves = 0;
        for (size_t w = 0; w < reached.size(); w += words) {
            const size_t room = n_leaves + 64 * words + list_padding;
            if (numbers.size() < room) numbers.resize(2 * room);
            const size_t end = std::min(w + words, reached.size());
            n_leaves += forest.arithmetic->list(reached.data(), w, end, &numbers[n_leaves]);
        }
    }

    // Divide the boxes into those of the base and of slices.
    void divide() {
        n_base_terms = 0;
        std::fill(n_terms.begin(), n_terms.end(), 0);
        for (size_t n = 0; n < n_different; ++n) {
            const uint32_t value = boxes[different[n]].sum;
            const LanePlan::PlannedBox& planned = plan[different[n]];
            const LaneBox& box = planned.box;
            const LanePlan::SliceSet& slices = plan.slices_of(planned);
            base_terms[n_base_terms] = {box, value};
            n_base_terms += slices.in_base;
            const uint32_t own = slices.in_base ? 0 - value : value;
            const uint16_t* numbers_of = plan.slices(slices);
            // Most boxes have at most one slice; a box without slices has one that is not used.
            terms[numbers_of[0]][n_terms[numbers_of[0]]++] = {box, own};
            for (uint32_t s = 1; s < slices.count; ++s) {
                const size_t slice = numbers_of[s];
                terms[slice][n_terms[slice]++] = {box, own};
            }
        }
    }
};

}  // namespace forest
}  // namespace feta

// LaneMajority: the majority of a person's counterparts by a threshold, from rounded sums of all
// cells. What rounding leaves undecided is counted elsewhere.
#pragma once
#include "forest_lane_plan.hpp"
#include "forest_sums.hpp"

namespace feta {
namespace forest {

// What all threads share: the plan, and the leaves with rounded values, sorted by box.
class LaneForest {
  public:
    struct RoundedLeaf {
        uint32_t rank = 0, value = 0;  // the rank of its box in the plan
    };

    LaneForest(const Layout& layout, const LeafSets& leaf_sets, std::unique_ptr<LaneSums> with)
        : plan(layout), arithmetic(std::move(with)) {
        const size_t n_trees = layout.roots.size();
        usable = plan.usable && n_trees < size_t(1) << 20;
        if (!usable) return;
        const Sums<int32_t> rounded(layout, shift_to_fit(layout, sum_bits));
        base = uint32_t(rounded.base[0]);
        limits = {rounded.comparison.largest_below(), rounded.comparison.smallest_above()};
        above_number = size_t(rounded.comparison.above_number());
        sort_leaves(layout, rounded.leaves);
        sets.emplace(leaf_sets, places);
        for (const Axis& axis : layout.spec.axes)
            total *= std::accumulate(axis.sizes.begin(), axis.sizes.end(), uint64_t(0));
    }

    LanePlan plan;
    std::unique_ptr<LaneSums> arithmetic;
    bool usable = false;
    std::vector<RoundedLeaf> leaves;  // the last one belongs to no box
    std::vector<uint32_t> places;     // by leaf of the layout: its place here
    std::optional<LeafSets> sets;     // of leaves in these places
    uint32_t base = 0;
    LaneLimits limits;
    size_t above_number = 1;
    uint64_t total = 1;  // counterparts

  private:
    // Sums and the slack of rounding stay below 2^30, the limit of `Comparison`.
    static constexpr int sum_bits = 29;

    void sort_leaves(const Layout& layout, const std::vector<int32_t>& values) {
        std::vector<uint32_t> order(layout.leaves.size());
        std::iota(order.begin(), order.end(), 0);
        const auto rank = [&](uint32_t leaf) { return plan.ranks[layout.leaves[leaf].box]; };
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
        places.resize(order.size());
        for (const uint32_t leaf : order) {
            places[leaf] = uint32_t(leaves.size());
            leaves.push_back({rank(leaf), uint32_t(values[size_t(layout.sources[leaf])])});
        }
        leaves.push_back({UINT32_MAX, 0});
    }
};

class LaneMajority {
  public:
    explicit LaneMajority(const LaneForest& from)
        : forest(from), plan(from.plan), with(*from.arithmetic), boxes(plan.count() + 1),
          base_events(2 * plan.n_runs + 1), base(plan.shape.rows * plan.shape.blocks) {
        // In lists, some entries are written before it is known whether they are needed.
        if (plan.n_slices == 1) return;
        set_events.resize(2 * plan.n_runs + events_copied);
        reached_sets.resize(plan.count() + 1);
        slices.resize(plan.n_slices);
        for (size_t s = 0; s < slices.size(); ++s)
            slices[s].events.resize(2 * plan.slice_runs[s] + events_copied);
        changes.resize(base.size());
        narrow_base.resize(plan.shape.rows * plan.shape.narrow_blocks);
        narrow_changes.resize(narrow_base.size());
    }

    // Count until one side has more than half of all counterparts. Return whether the majority is
    // certain.
    bool decide(const double* person, Boxes& reaches, std::vector<uint64_t>& counts) {
        if (!forest.sets->intersect(person, chosen, reached)) {
            reaches.reach(person);
            move(reaches.reached());
        }
        list_leaves();
        sum_boxes();
        divide();
        std::fill(base.begin(), base.end(), LaneBlock{});
        for (size_t b = 0; b < plan.shape.blocks; ++b)
            for (uint32_t& lane : base[b].lanes) lane = forest.base;
        with.add(plan.shape, base_events.data(), n_base_events, base.data());
        with.accumulate(plan.shape, base.data());
        LaneSides sides;
        if (plan.n_slices == 1)
            sides = with.count(plan.shape, base.data(), forest.limits);
        else if (sides = count_narrow(); !is_certain(sides))
            sides = count_wide();
        counts[forest.above_number] = sides.above;
        counts[1 - forest.above_number] = sides.below;
        return is_certain(sides);
    }

  private:
    struct Reached {  // a box
        uint32_t rank = 0;
        uint32_t sum = 0;  // of its leaves and those of all boxes before it
    };
    struct ReachedSet {  // a set of slices, and the end of its events
        uint32_t number = 0, end = 0;
    };
    struct Slice {
        std::vector<LaneEvent> events;
        size_t count = 0;
    };
    static constexpr size_t events_copied = 8;  // at once

    const LaneForest& forest;
    const LanePlan& plan;
    const LaneSums& with;
    std::vector<const uint64_t*> chosen;
    std::vector<uint64_t> reached;  // one bit per leaf
    std::vector<uint32_t> numbers;  // of reached leaves, ascending
    std::vector<Reached> boxes;
    size_t n_leaves = 0, n_boxes = 0, n_base_events = 0, n_set_events = 0, n_sets = 0;
    std::vector<LaneEvent> base_events, set_events;
    std::vector<ReachedSet> reached_sets;
    uint64_t size = 0;  // the sum of the absolute values of boxes with slices
    std::vector<Slice> slices;
    std::vector<LaneBlock> base, changes;
    std::vector<NarrowBlock> narrow_base, narrow_changes;

    // Put each leaf of the layout in its place.
    void move(const std::vector<uint64_t>& from) {
        reached.assign(from.size(), 0);
        for (size_t w = 0; w < from.size(); ++w)
            for (uint64_t word = from[w]; word; word &= word - 1) {
                const uint32_t place = forest.places[64 * w + size_t(std::countr_zero(word))];
                reached[place / 64] |= uint64_t(1) << place % 64;
            }
    }

    void list_leaves() {
        constexpr size_t words = 16;
        n_leaves = 0;
        for (size_t w = 0; w < reached.size(); w += words) {
            const size_t room = n_leaves + 64 * words + list_padding;
            if (numbers.size() < room) numbers.resize(2 * room);
            const size_t end = std::min(w + words, reached.size());
            n_leaves += with.list(reached.data(), w, end, &numbers[n_leaves]);
        }
        numbers[n_leaves] = uint32_t(forest.leaves.size() - 1);
    }

    // Sum the leaves of each box, which are neighbors. No branch depends on where they end, because
    // nothing predicts that.
    void sum_boxes() {
        constexpr size_t ahead = 32;
        const LaneForest::RoundedLeaf* leaves = forest.leaves.data();
        uint32_t sum = 0;
        n_boxes = 0;
        for (size_t n = 0; n < n_leaves; ++n) {
            if (n + ahead < n_leaves) __builtin_prefetch(&leaves[numbers[n + ahead]]);
            const auto [rank, value] = leaves[numbers[n]];
            sum += value;
            boxes[n_boxes] = {rank, sum};
            n_boxes += leaves[numbers[n + 1]].rank != rank;
        }
        boxes[n_boxes] = {uint32_t(plan.count()), sum};
    }

    // Divide the boxes into events of the base and of sets of slices.
    void divide() {
        n_base_events = n_set_events = n_sets = 0;
        size = 0;
        size_t n = 0;
        for (; boxes[n].rank < plan.n_common; ++n) n_base_events = append_base(n, n_base_events);
        for (; boxes[n].rank < plan.n_in_base; ++n) {
            n_base_events = append_base(n, n_base_events);
            append_set(n, 0 - value_of(n));
        }
        for (; n < n_boxes; ++n) append_set(n, value_of(n));
    }

    uint32_t value_of(size_t n) const { return boxes[n].sum - (n ? boxes[n - 1].sum : 0); }

    size_t append_base(size_t n, size_t count) {
        return append(plan[boxes[n].rank], value_of(n), base_events.data(), count);
    }

    void append_set(size_t n, uint32_t value) {
        const LanePlan::PlannedBox& box = plan[boxes[n].rank];
        n_set_events = append(box, value, set_events.data(), n_set_events);
        reached_sets[n_sets] = {box.slices, uint32_t(n_set_events)};
        n_sets += plan[boxes[n + 1].rank].slices != box.slices;
        size += uint64_t(std::abs(int64_t(int32_t(value)))) * (1u + box.more_runs);
    }

    // Append where the runs of a box begin and end; return the number of events.
    size_t append(const LanePlan::PlannedBox& box, uint32_t value, LaneEvent* events,
                  size_t count) const {
        count = append_run(box.run, box.mask, value, events, count);
        const RowRun* more = plan.more_runs(box);
        for (uint16_t r = 0; r < box.more_runs; ++r)
            count = append_run(more[r], box.mask, value, events, count);
        return count;
    }

    size_t append_run(const RowRun& run, uint16_t mask, uint32_t value, LaneEvent* events,
                      size_t count) const {
        events[count++] = {run.begin, mask, value};
        events[count] = {run.end, mask, 0 - value};
        return count + (run.end != plan.shape.rows);
    }

    // Copy the events of each set to its early slices, or to the others.
    void fill_slices(bool early) {
        size_t begin = 0;
        for (size_t n = 0; n < n_sets; ++n) {
            const auto [number, end] = reached_sets[n];
            const LanePlan::SliceSet& set = plan.slice_set(number);
            const uint16_t* slice_numbers = plan.slices(set);
            const uint32_t last = early ? set.n_early : set.count;
            for (uint32_t s = early ? 0 : set.n_early; s < last; ++s) {
                Slice& to = slices[slice_numbers[s]];
                LaneEvent* events = to.events.data() + to.count;
                for (size_t at = begin; at < end; at += events_copied, events += events_copied)
                    std::copy_n(&set_events[at], events_copied, events);
                to.count += end - begin;
            }
            begin = end;
        }
    }

    bool is_certain(const LaneSides& sides) const {
        return sides.below + sides.above == forest.total ||
               2 * std::max(sides.below, sides.above) > forest.total;
    }

    // Count slices until one side has more than half of all counterparts.
    template <class Count> LaneSides count_slices(Count count) {
        for (Slice& slice : slices) slice.count = 0;
        LaneSides sides;
        for (size_t s = 0; s < plan.n_slices; ++s) {
            if (s == 0 || s == plan.n_early) fill_slices(s == 0);
            const LaneSides own = count(slices[s].events.data(), slices[s].count);
            sides.below += own.below * plan.slice_sizes[s];
            sides.above += own.above * plan.slice_sizes[s];
            if (2 * std::max(sides.below, sides.above) > forest.total) break;
        }
        return sides;
    }

    LaneSides count_wide() {
        divide();  // again, because values were divided
        return count_slices([&](const LaneEvent* events, size_t count) {
            with.add(plan.shape, events, count, changes.data());
            return with.count_changed(plan.shape, base.data(), changes.data(), forest.limits);
        });
    }

    // Count with sums of 16 bits. A cell with the base B and the change D in its slice, the sum of
    // n runs at most, is decided by b + d. b is (B − threshold) / 2^shift, rounded down and
    // clamped. d is the sum of the runs, each divided by 2^shift and rounded towards 0, so that its
    // end takes back what its beginning adds. (B + D − threshold) / 2^shift is more than b + d − n
    // and less than b + d + n + 1. d is smaller than the limit that clamps b. So a clamped b is on
    // the side of b + d, and says less than it could.
    LaneSides count_narrow() {
        int shift = 0;
        while (size >> shift >= narrow_limit) ++shift;
        const auto [most_below, least_above] = forest.limits;
        const int64_t gap = std::max<int64_t>(int64_t(least_above) - most_below - 1, 0);
        const int64_t steps = (gap >> shift) + 2;  // at least the gap, rounded up, and 1
        if (!plan.is_narrow || steps + int64_t(n_set_events) >= narrow_limit) return {};
        with.narrow(plan.shape, base.data(), least_above, shift, narrow_base.data());
        for (size_t n = 0; n < n_set_events; ++n) {
            const int32_t value = int32_t(set_events[n].value);
            const int32_t rest = value < 0 ? (int32_t(1) << shift) - 1 : 0;
            set_events[n].value = uint32_t((value + rest) >> shift);
        }
        return count_slices([&](const LaneEvent* events, size_t count) {
            with.add_narrow(plan.shape, events, count, narrow_changes.data());
            const int32_t n = int32_t(count);
            return with.count_narrow(plan.shape, narrow_base.data(), narrow_changes.data(),
                                     {-int32_t(steps) - n, n});
        });
    }
};

}  // namespace forest
}  // namespace feta

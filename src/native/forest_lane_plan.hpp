// LanePlan: how the boxes of an ensemble are added into tables of lanes; the same for all people.
//
// The longest ordered axis is that of rows. If the other axes have many combinations, the longest
// of them has slices: one table per group. A box with most groups of it is in the base of all
// slices, and its value is subtracted in the others. The rest of the axes make up the lanes.
#pragma once
#include <numeric>

#include "forest_lanes.hpp"
#include "forest_layout.hpp"

namespace feta {
namespace forest {

// Larger lattices are left to tables of classes. Rows of a table have 16 bits.
constexpr size_t max_lanes = 128, max_lane_cells = size_t(1) << 19, max_lane_rows = 4096;

class LanePlan {
  public:
    explicit LanePlan(const Layout& layout) : spec(layout.spec), boxes(layout.boxes) {
        choose_axes();
        usable &= shape.rows <= max_lane_rows && n_lanes <= max_lanes &&
                  shape.rows * shape.blocks * n_slices <= max_lane_cells / lanes_per_block;
        if (!usable) return;
        list_sizes();
        plan_boxes();
        shape.masks = masks.data();
        shape.more_runs = more_runs.data();
        shape.row_sizes = row_sizes.data();
        shape.lane_sizes = lane_sizes.data();
    }
    LanePlan(const LanePlan&) = delete;  // the shape has pointers
    LanePlan& operator=(const LanePlan&) = delete;

    // The slices of a box, with its value negated if it is in the base.
    struct SliceSet {
        uint32_t first = 0, count = 0;
        bool in_base = true;
    };

    bool usable = true;
    LaneShape shape;
    size_t n_slices = 1;
    std::vector<uint64_t> slice_sizes;  // values by slice
    std::vector<uint32_t> slice_terms;  // by slice: the number of boxes that belong to it

    // A box of the ensemble, and its set of slices.
    struct PlannedBox {
        LaneBox box;
        uint32_t slices = 0;
    };
    const PlannedBox& operator[](uint32_t box) const { return planned[box]; }
    const SliceSet& slices_of(const PlannedBox& box) const { return slice_sets[box.slices]; }
    // The numbers of slices, at least one: after the last one follows `n_slices`.
    const uint16_t* slices(const SliceSet& of) const { return &slice_numbers[of.first]; }

  private:
    const ForestSpec& spec;
    const BoxTable& boxes;
    bool has_slices = false, has_rows = false;
    size_t row_axis = 0, slice_axis = 0, n_lanes = 1;
    std::vector<size_t> lane_axes;
    std::vector<uint32_t> row_sizes;
    std::vector<uint64_t> lane_sizes;
    std::vector<uint32_t> masks;
    std::vector<PlannedBox> planned;
    std::vector<RowRun> more_runs;
    std::vector<SliceSet> slice_sets;
    std::vector<uint16_t> slice_numbers;

    size_t groups(size_t axis) const { return size_t(spec.axes[axis].groups()); }

    void choose_axes() {
        const size_t n_axes = spec.axes.size();
        const auto rank = [&](size_t axis) {
            return std::make_pair(spec.axes[axis].ordered, groups(axis));
        };
        has_rows = n_axes > 0;
        for (size_t a = 1; a < n_axes; ++a)
            if (rank(row_axis) < rank(a)) row_axis = a;
        for (size_t a = 0; a < n_axes; ++a)
            if (a != row_axis) lane_axes.push_back(a);
        n_lanes = count_lanes();
        if (n_lanes > max_lanes) {
            const auto longest =
                std::max_element(lane_axes.begin(), lane_axes.end(),
                                 [&](size_t a, size_t b) { return groups(a) < groups(b); });
            has_slices = true;
            slice_axis = *longest;
            n_slices = groups(slice_axis);
            lane_axes.erase(longest);
            n_lanes = count_lanes();
        }
        shape.rows = has_rows ? groups(row_axis) : 1;
        shape.blocks = (n_lanes + lanes_per_block - 1) / lanes_per_block;
        shape.mask_words = (n_lanes + 31) / 32;
    }

    // Count combinations, at least up to one more than all limits.
    size_t count_lanes() const {
        size_t count = 1;
        for (const size_t axis : lane_axes)
            count = std::min(count * groups(axis), 2 * max_lane_cells);
        return count;
    }

    void list_sizes() {
        uint64_t all = 0;
        row_sizes.assign(1, 1);
        if (has_rows) {
            const auto& sizes = spec.axes[row_axis].sizes;
            row_sizes.assign(sizes.begin(), sizes.end());
            for (const uint64_t size : sizes) all = std::min(all + size, uint64_t(1) << 40);
        }
        usable &= all < uint64_t(1) << 32;
        lane_sizes.assign(shape.blocks * lanes_per_block, 0);
        for (size_t lane = 0; lane < n_lanes; ++lane) {
            lane_sizes[lane] = 1;
            for_each_group(lane, [&](size_t axis, size_t group) {
                lane_sizes[lane] *= spec.axes[axis].sizes[group];
            });
        }
        slice_sizes.assign(1, 1);
        if (has_slices) slice_sizes = spec.axes[slice_axis].sizes;
        slice_terms.assign(n_slices + 1, 0);
    }

    // Call visit(axis, group) for the groups of a lane.
    template <class Visit> void for_each_group(size_t lane, Visit visit) const {
        for (const size_t axis : lane_axes) {
            visit(axis, lane % groups(axis));
            lane /= groups(axis);
        }
    }

    void plan_boxes() {
        Numbers known_masks;
        std::map<uint32_t, LaneBox> known_rows;
        std::map<uint32_t, uint32_t> known_slices;
        planned.resize(boxes.count());
        more_runs.emplace_back();
        slice_sets.emplace_back();
        slice_numbers.push_back(uint16_t(n_slices));
        std::vector<uint64_t> sets(lane_axes.size());
        for (size_t box = 0; box < boxes.count(); ++box) {
            LaneBox& to = planned[box].box;
            to.run.end = uint16_t(shape.rows);
            if (has_rows) {
                const uint32_t set = boxes.set_of(box, row_axis);
                const auto [known, is_new] = known_rows.try_emplace(set);
                if (is_new) known->second = find_runs(boxes.set(set));
                to = known->second;
            }
            for (size_t a = 0; a < sets.size(); ++a) sets[a] = boxes.set_of(box, lane_axes[a]);
            const auto [known, is_new] =
                known_masks.try_emplace(sets, uint32_t(known_masks.size()));
            if (is_new) add_mask(sets);
            to.mask = known->second;
            if (has_slices) plan_slices(box, known_slices);
        }
        slice_terms[n_slices] = uint32_t(boxes.count());
    }

    static bool has(const uint64_t* set, size_t group) { return set[group / 64] >> group % 64 & 1; }

    LaneBox find_runs(const uint64_t* set) {
        std::vector<RowRun> runs;
        for (size_t row = 0; row < shape.rows; ++row) {
            if (!has(set, row)) continue;
            if (row == 0 || !has(set, row - 1)) runs.push_back({uint16_t(row), 0});
            runs.back().end = uint16_t(row + 1);
        }
        LaneBox box;
        box.run = runs.at(0);
        if (runs.size() == 1) return box;
        box.more_runs = uint32_t(more_runs.size());
        more_runs.push_back({uint16_t(runs.size() - 1), 0});
        more_runs.insert(more_runs.end(), runs.begin() + 1, runs.end());
        return box;
    }

    void add_mask(const std::vector<uint64_t>& sets) {
        const size_t first = masks.size();
        masks.resize(first + shape.mask_words, 0);
        for (size_t lane = 0; lane < n_lanes; ++lane) {
            bool inside = true;
            size_t index = 0;
            for_each_group(lane, [&](size_t, size_t group) {
                inside &= has(boxes.set(uint32_t(sets[index++])), group);
            });
            masks[first + lane / 32] |= uint32_t(inside) << lane % 32;
        }
    }

    void plan_slices(size_t box, std::map<uint32_t, uint32_t>& known_slices) {
        const uint32_t set = boxes.set_of(box, slice_axis);
        const auto [known, is_new] = known_slices.try_emplace(set, uint32_t(slice_sets.size()));
        if (is_new) add_slices(boxes.set(set));
        planned[box].slices = known->second;
        const SliceSet& of = slice_sets[known->second];
        for (size_t s = 0; s < of.count; ++s) ++slice_terms[slices(of)[s]];
    }

    void add_slices(const uint64_t* set) {
        size_t count = 0;
        for (size_t slice = 0; slice < n_slices; ++slice) count += has(set, slice);
        SliceSet to{uint32_t(slice_numbers.size()), 0, 2 * count > n_slices};
        for (size_t slice = 0; slice < n_slices; ++slice)
            if (has(set, slice) != to.in_base) slice_numbers.push_back(uint16_t(slice));
        to.count = uint32_t(slice_numbers.size()) - to.first;
        slice_numbers.push_back(uint16_t(n_slices));
        slice_sets.push_back(to);
    }
};

}  // namespace forest
}  // namespace feta

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

// Larger lattices are left to tables of classes. Rows and masks have 16 bits.
constexpr size_t max_lanes = 128, max_lane_cells = size_t(1) << 19, max_lane_rows = 4096;
constexpr size_t max_masks = size_t(1) << 16;

// The rows of a run: from `begin` to before `end`, which may be the row after the last one.
struct RowRun {
    uint16_t begin = 0, end = 0;
};

class LanePlan {
  public:
    explicit LanePlan(const Layout& layout) : spec(layout.spec), boxes(layout.boxes) {
        choose_axes();
        usable &= shape.rows <= max_lane_rows && n_lanes <= max_lanes &&
                  shape.rows * shape.blocks * n_slices <= max_lane_cells / lanes_per_block;
        if (!usable) return;
        list_sizes();
        plan_boxes();
        sort_boxes();
        shape.masks = masks.data();
        shape.narrow_masks = narrow_masks.data();
        shape.row_sizes = row_sizes.data();
        shape.narrow_row_sizes = narrow_row_sizes.data();
        shape.lane_sizes = lane_sizes.data();
        shape.narrow_lane_sizes = narrow_lane_sizes.data();
    }
    LanePlan(const LanePlan&) = delete;  // the shape has pointers
    LanePlan& operator=(const LanePlan&) = delete;

    // The slices of a box, with its value negated if it is in the base.
    struct SliceSet {
        uint32_t first = 0, n_early = 0, count = 0;
        bool in_base = true;
    };

    bool usable = true;
    LaneShape shape;
    size_t n_slices = 1;
    bool is_narrow = false;  // whether counts fit into narrow lanes
    // By slice: its values, and the runs of boxes that belong to it. Slices with few runs per value
    // come first. The first ones have most of the values: the others are rarely counted.
    std::vector<uint64_t> slice_sizes;
    std::vector<uint64_t> slice_runs;
    size_t n_early = 0;
    size_t n_runs = 0;  // of all boxes
    // Boxes are sorted: those of the base alone come first, then those of the base and of slices,
    // then those of slices. The boxes of a set of slices are neighbors.
    size_t n_common = 0, n_in_base = 0;
    std::vector<uint32_t> ranks;  // by box of the ensemble: its place here

    // What a box of the ensemble admits on the row axis, the lane axes and the slice axis.
    struct PlannedBox {
        RowRun run;
        uint16_t mask = 0;       // the number of a set of lanes
        uint16_t more_runs = 0;  // the number of further runs
        uint32_t first_run = 0;  // the place of the further runs
        uint32_t slices = 0;
    };
    size_t count() const { return ranks.size(); }
    // After the last box, there is one that belongs to no set of slices.
    const PlannedBox& operator[](size_t rank) const { return planned[rank]; }
    const SliceSet& slice_set(uint32_t number) const { return slice_sets[number]; }
    const uint16_t* slices(const SliceSet& of) const { return slice_numbers.data() + of.first; }
    const RowRun* more_runs(const PlannedBox& box) const {
        return further_runs.data() + box.first_run;
    }

  private:
    const ForestSpec& spec;
    const BoxTable& boxes;
    bool has_slices = false, has_rows = false;
    size_t row_axis = 0, slice_axis = 0, n_lanes = 1;
    std::vector<size_t> lane_axes;
    std::vector<uint32_t> row_sizes;
    std::vector<uint64_t> lane_sizes;
    std::vector<LaneBlock> masks, narrow_lane_sizes;
    std::vector<NarrowBlock> narrow_masks, narrow_row_sizes;
    std::vector<size_t> slice_groups;  // by slice: its group
    std::vector<PlannedBox> planned;
    std::vector<RowRun> further_runs;
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
        shape.narrow_blocks = (n_lanes + narrow_lanes_per_block - 1) / narrow_lanes_per_block;
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
        lane_sizes.assign(shape.narrow_blocks * narrow_lanes_per_block, 0);
        for (size_t lane = 0; lane < n_lanes; ++lane) {
            lane_sizes[lane] = 1;
            for_each_group(lane, [&](size_t axis, size_t group) {
                lane_sizes[lane] *= spec.axes[axis].sizes[group];
            });
        }
        constexpr uint64_t most_rows = uint64_t(1) << 16, most_cells = uint64_t(1) << 32;
        uint64_t cells = 0;  // counterparts of a slice
        for (const uint64_t size : lane_sizes)
            cells += std::min(all, most_rows) * std::min(size, most_cells);
        is_narrow = all < most_rows && cells < most_cells;
        for (const uint32_t size : row_sizes)
            std::fill_n(narrow_row_sizes.emplace_back().lanes, narrow_lanes_per_block,
                        uint16_t(size));
        narrow_lane_sizes.resize(lane_sizes.size() / lanes_per_block);
        for (size_t lane = 0; lane < lane_sizes.size(); ++lane)
            lane_of(narrow_lane_sizes.data(), lane) = uint32_t(lane_sizes[lane]);
    }

    // Call visit(axis, group) for the groups of a lane.
    template <class Visit> void for_each_group(size_t lane, Visit visit) const {
        for (const size_t axis : lane_axes) {
            visit(axis, lane % groups(axis));
            lane /= groups(axis);
        }
    }

    void plan_boxes() {
        sort_slices();
        Numbers known_masks;
        std::map<uint32_t, PlannedBox> known_rows;
        std::map<uint32_t, uint32_t> known_slices;
        planned.resize(boxes.count());
        slice_sets.emplace_back();
        std::vector<uint64_t> sets(lane_axes.size());
        for (size_t box = 0; box < boxes.count(); ++box) {
            PlannedBox& to = planned[box];
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
            to.mask = uint16_t(known->second);
            if (has_slices) plan_slices(box, known_slices);
            n_runs += 1u + to.more_runs;
        }
        usable &= known_masks.size() <= max_masks;
    }

    static bool has(const uint64_t* set, size_t group) { return set[group / 64] >> group % 64 & 1; }

    PlannedBox find_runs(const uint64_t* set) {
        std::vector<RowRun> runs;
        for (size_t row = 0; row < shape.rows; ++row) {
            if (!has(set, row)) continue;
            if (row == 0 || !has(set, row - 1)) runs.push_back({uint16_t(row), 0});
            runs.back().end = uint16_t(row + 1);
        }
        PlannedBox box;
        box.run = runs.at(0);
        box.more_runs = uint16_t(runs.size() - 1);
        box.first_run = uint32_t(further_runs.size());
        further_runs.insert(further_runs.end(), runs.begin() + 1, runs.end());
        return box;
    }

    void add_mask(const std::vector<uint64_t>& sets) {
        masks.resize(masks.size() + shape.blocks);
        narrow_masks.resize(narrow_masks.size() + shape.narrow_blocks);
        LaneBlock* mask = &masks[masks.size() - shape.blocks];
        NarrowBlock* narrow_mask = &narrow_masks[narrow_masks.size() - shape.narrow_blocks];
        for (size_t lane = 0; lane < n_lanes; ++lane) {
            bool inside = true;
            size_t index = 0;
            for_each_group(lane, [&](size_t, size_t group) {
                inside &= has(boxes.set(uint32_t(sets[index++])), group);
            });
            lane_of(mask, lane) = inside ? UINT32_MAX : 0;
            lane_of(narrow_mask, lane) = inside ? UINT16_MAX : 0;
        }
    }

    // Whether a set with more than half of all groups is in the base.
    bool is_in_base(const uint64_t* set) const {
        size_t count = 0;
        for (size_t group = 0; group < n_slices; ++group) count += has(set, group);
        return 2 * count > n_slices;
    }

    void sort_slices() {
        slice_runs.assign(n_slices, 0);
        slice_sizes.assign(1, 1);
        slice_groups.resize(n_slices);
        std::iota(slice_groups.begin(), slice_groups.end(), 0);
        n_early = n_slices;
        if (!has_slices) return;
        std::vector<uint64_t> n_boxes(n_slices);  // by group
        for (size_t box = 0; box < boxes.count(); ++box) {
            const uint64_t* set = boxes.set(boxes.set_of(box, slice_axis));
            const bool in_base = is_in_base(set);
            for (size_t group = 0; group < n_slices; ++group)
                n_boxes[group] += has(set, group) != in_base;
        }
        const auto& sizes = spec.axes[slice_axis].sizes;
        const auto boxes_per_value = [&](size_t group) {
            return double(n_boxes[group]) / double(sizes[group]);
        };
        std::stable_sort(slice_groups.begin(), slice_groups.end(), [&](size_t a, size_t b) {
            return boxes_per_value(a) < boxes_per_value(b);
        });
        uint64_t all = 0, early = 0;
        for (size_t slice = 0; slice < n_slices; ++slice) all += sizes[slice];
        slice_sizes.clear();
        for (const size_t group : slice_groups) {
            if (early <= all / 8 * 5) n_early = slice_sizes.size() + 1;
            early += sizes[group];
            slice_sizes.push_back(sizes[group]);
        }
    }

    void plan_slices(size_t box, std::map<uint32_t, uint32_t>& known_slices) {
        const uint32_t set = boxes.set_of(box, slice_axis);
        const auto [known, is_new] = known_slices.try_emplace(set, uint32_t(slice_sets.size()));
        if (is_new) add_slices(boxes.set(set));
        planned[box].slices = known->second;
        const SliceSet& of = slice_sets[known->second];
        for (size_t s = 0; s < of.count; ++s)
            slice_runs[slices(of)[s]] += 1u + planned[box].more_runs;
    }

    void add_slices(const uint64_t* set) {
        SliceSet to{uint32_t(slice_numbers.size()), 0, 0, is_in_base(set)};
        for (size_t slice = 0; slice < n_slices; ++slice) {
            if (has(set, slice_groups[slice]) == to.in_base) continue;
            slice_numbers.push_back(uint16_t(slice));
            to.n_early += slice < n_early;
            ++to.count;
        }
        slice_sets.push_back(to);
    }

    void sort_boxes() {
        const auto key = [&](uint32_t box) {
            const PlannedBox& of = planned[box];
            const SliceSet& in = slice_sets[of.slices];
            return std::make_tuple(!in.in_base, in.count > 0, of.slices, of.mask, of.run.begin);
        };
        std::vector<uint32_t> order(planned.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
        std::vector<PlannedBox> sorted;
        ranks.resize(order.size());
        for (const uint32_t box : order) {
            const SliceSet& in = slice_sets[planned[box].slices];
            n_common += in.count == 0;
            n_in_base += in.in_base;
            ranks[box] = uint32_t(sorted.size());
            sorted.push_back(planned[box]);
        }
        sorted.emplace_back();
        sorted.back().slices = UINT32_MAX;
        planned = std::move(sorted);
    }
};

}  // namespace forest
}  // namespace feta

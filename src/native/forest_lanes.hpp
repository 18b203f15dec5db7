// Lanes: sums of many cells at once, in integers of 32 or 16 bits. There is one implementation per
// instruction set; all of them give the same integers.
//
// A table has one row per group of the row axis, and one lane per combination of groups of the lane
// axes. A box adds its value to some lanes where a run of its groups begins, and subtracts it where
// the run ends. Sums may wrap on the way; those of cells do not.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace feta {
namespace forest {

constexpr size_t lanes_per_block = 8, narrow_lanes_per_block = 16, list_padding = 64;
// Narrow sums are clamped to this range. The changes of a slice are smaller, so that both together
// fit into 16 bits.
constexpr int32_t narrow_limit = 1 << 14;

struct alignas(32) LaneBlock {
    uint32_t lanes[lanes_per_block];
};
struct alignas(32) NarrowBlock {
    uint16_t lanes[narrow_lanes_per_block];
};

template <class Table> auto& lane_of(Table* table, size_t lane) {
    constexpr size_t n = std::extent_v<decltype(Table::lanes)>;
    return table[lane / n].lanes[lane % n];
}

// A value that is added to the lanes of a mask, from a row on.
struct LaneEvent {
    uint16_t row = 0, mask = 0;  // the number of a set of lanes
    uint32_t value = 0;
};

// The arrays of a plan, as the implementations read them.
struct LaneShape {
    size_t rows = 1, blocks = 1, narrow_blocks = 1;  // blocks of lanes
    const LaneBlock* masks = nullptr;                // (masks, blocks): all bits or none by lane
    const NarrowBlock* narrow_masks = nullptr;       // the same
    const uint32_t* row_sizes = nullptr;             // values by group of the row axis
    const NarrowBlock* narrow_row_sizes = nullptr;   // the same in all lanes
    const uint64_t* lane_sizes = nullptr;  // (narrow blocks × lanes): values by lane; 0 for no lane
    const LaneBlock* narrow_lane_sizes = nullptr;  // the same
};

// Values of cells by the side of the threshold.
struct LaneSides {
    uint64_t below = 0, above = 0;
};

// Sums up to `most_below` are below the threshold, and those from `least_above` are above.
struct LaneLimits {
    int32_t most_below = 0, least_above = 0;
};

class LaneSums {
  public:
    virtual ~LaneSums();
    // Write the places of the bits of the words from `begin` to before `end`; return their number.
    // There is room for `list_padding` more.
    virtual size_t list(const uint64_t* words, size_t begin, size_t end, uint32_t* to) const = 0;
    // Add events to a table of differences, (rows, blocks).
    virtual void add(const LaneShape&, const LaneEvent*, size_t count, LaneBlock* table) const = 0;
    // Replace differences by sums.
    virtual void accumulate(const LaneShape&, LaneBlock* table) const = 0;
    // Count the sums of a table.
    virtual LaneSides count(const LaneShape&, const LaneBlock* sums, const LaneLimits&) const = 0;
    // Count the sums of a table plus differences, and clear the differences.
    virtual LaneSides count_changed(const LaneShape&, const LaneBlock* sums, LaneBlock* differences,
                                    const LaneLimits&) const = 0;
    // Write (sums − center) / 2^shift, rounded down and clamped.
    virtual void narrow(const LaneShape&, const LaneBlock* sums, int32_t center, int shift,
                        NarrowBlock* to) const = 0;
    // The same as above, with narrow values and limits.
    virtual void add_narrow(const LaneShape&, const LaneEvent*, size_t count,
                            NarrowBlock* table) const = 0;
    virtual LaneSides count_narrow(const LaneShape&, const NarrowBlock* sums,
                                   NarrowBlock* differences, const LaneLimits&) const = 0;
};

// forest_lanes.inc is compiled once per instruction set; each copy defines one of these.
std::unique_ptr<LaneSums> make_lanes_portable();
std::unique_ptr<LaneSums> make_lanes_avx2();

}  // namespace forest
}  // namespace feta

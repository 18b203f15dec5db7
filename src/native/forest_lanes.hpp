// Lanes: sums of many cells at once, in integers of 32 bits. There is one implementation per
// instruction set; all of them give the same integers.
//
// A table has one row per group of the row axis, and one lane per combination of groups of the lane
// axes. A box adds its value to some lanes of the row where a run of its groups begins, and
// subtracts it where the run ends. Sums may wrap on the way; those of cells do not.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace feta {
namespace forest {

constexpr size_t lanes_per_block = 8, list_padding = 64;

struct alignas(32) LaneBlock {
    uint32_t lanes[lanes_per_block];
};

// The rows of a run: from `begin` to before `end`, which may be the row after the last one.
struct RowRun {
    uint16_t begin = 0, end = 0;
};

// What a box admits on the row axis and on the lane axes.
struct LaneBox {
    uint32_t mask = 0;  // the number of a set of lanes
    RowRun run;
    uint32_t more_runs = 0;  // further runs: the place of their number; 0 for none
};

// A box and the value it adds.
struct LaneTerm {
    LaneBox box;
    uint32_t value = 0;
};

// The arrays of a plan, as the implementations read them.
struct LaneShape {
    size_t rows = 1, blocks = 1;  // blocks of lanes
    size_t mask_words = 1;
    const uint32_t* masks = nullptr;  // (masks, words): one bit per lane
    const RowRun* more_runs = nullptr;
    const uint32_t* row_sizes = nullptr;   // values by group of the row axis
    const uint64_t* lane_sizes = nullptr;  // (blocks × lanes): values by lane; 0 for no lane
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
    virtual ~LaneSums() = default;
    // Write the places of the bits of the words from `begin` to before `end`; return their number.
    // There is room for `list_padding` more.
    virtual size_t list(const uint64_t* words, size_t begin, size_t end, uint32_t* to) const = 0;
    // Add boxes to a table of differences, (rows + 1, blocks).
    virtual void add(const LaneShape&, const LaneTerm*, size_t count, LaneBlock* table) const = 0;
    // Replace differences by sums.
    virtual void accumulate(const LaneShape&, LaneBlock* table) const = 0;
    // Count the sums of a table.
    virtual LaneSides count(const LaneShape&, const LaneBlock* sums, const LaneLimits&) const = 0;
    // Count the sums of a table plus differences, and clear the differences.
    virtual LaneSides count_changed(const LaneShape&, const LaneBlock* sums, LaneBlock* differences,
                                    const LaneLimits&) const = 0;
};

// forest_lanes.inc is compiled once per instruction set; each copy defines one of these.
std::unique_ptr<LaneSums> make_lanes_portable();
std::unique_ptr<LaneSums> make_lanes_avx2();

}  // namespace forest
}  // namespace feta

// Sums: the leaf values of an ensemble in one integer type, and bounds on the sums of a person.
#pragma once
#include "forest_boxes.hpp"
#include "forest_rule.hpp"

namespace feta {
namespace forest {

// Leaf values as multiples of 2^shift units, rounded down. A sum of them is too small by less than
// `slack`, which is 0 if they are exact.
template <class Int> struct Sums {
    Sums(const Layout& layout, int with_shift)
        : shift(with_shift), slack(with_shift ? Int(layout.roots.size() + 1) : Int(0)),
          leaves(shifted(layout.spec.leaves)), base(shifted(layout.spec.base)),
          comparison(layout.spec, shift, slack) {}

    int shift;
    Int slack;
    std::vector<Int> leaves, base;  // (leaves, outputs), (outputs)
    Comparison<Int> comparison;
    bool in_layout = false;  // whether the leaves of the layout have the values

    // Return the values of a reached leaf, by output.
    const Int* values(const Boxes& boxes, size_t index) const {
        if constexpr (std::is_same_v<Int, int64_t>)
            if (in_layout) return &boxes[index].value;
        return &leaves[size_t(boxes.source(index)) * base.size()];
    }

  private:
    std::vector<Int> shifted(const std::vector<Wide>& numbers) const {
        std::vector<Int> result;
        for (const Wide number : numbers) result.push_back(Int(number >> shift));
        return result;
    }
};

// Return the shift with which the largest leaves of all trees add up to less than 2^bits.
inline int shift_to_fit(const Layout& layout, int bits) {
    std::vector<Wide> largest(layout.roots.size(), 0);
    for (size_t tree = 0; tree < largest.size(); ++tree)
        for (size_t n = layout.leaves_before[tree]; n < layout.leaves_before[tree + 1]; ++n) {
            const Wide value = layout.spec.leaves[size_t(layout.sources[n])];
            largest[tree] = std::max(largest[tree], value < 0 ? -value : value);
        }
    Wide sum = layout.spec.base[0] < 0 ? -layout.spec.base[0] : layout.spec.base[0];
    for (const Wide value : largest) sum += value;
    int shift = 0;
    while (sum >> shift >> bits) ++shift;
    return shift;
}

// The range of one output over all counterparts: the smallest and the largest leaf of each tree.
template <class Int> class Range {
  public:
    Int low = 0, high = 0;

    void find(const Boxes& boxes, const Sums<Int>& sums) {
        low = high = sums.base[0];
        Int least = 0, most = 0;  // of a tree, whose leaves are adjacent
        uint32_t tree = UINT32_MAX;
        for (size_t n = 0; n < boxes.count(); ++n) {
            const Int value = *sums.values(boxes, n);
            // All bits of `same` are equal, because nothing predicts a branch.
            const Int same = boxes[n].tree == tree ? Int(-1) : Int(0);
            const Int lower = std::min(value, Int(value ^ ((value ^ least) & same)));
            const Int upper = std::max(value, Int(value ^ ((value ^ most) & same)));
            low += lower - (least & same);
            high += upper - (most & same);
            least = lower;
            most = upper;
            tree = boxes[n].tree;
        }
    }
};

}  // namespace forest
}  // namespace feta

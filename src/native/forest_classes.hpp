// Classes: groups of values on one axis that no box of a person distinguishes.
#pragma once
#include "forest_boxes.hpp"

namespace feta {
namespace forest {

class Classes {
  public:
    std::vector<uint64_t> sizes, first;  // by class: the number of values, and the lowest index
    std::vector<int32_t> group;          // by class: its first group
    std::vector<int32_t> of;             // by group: its class
    std::vector<uint64_t> leaders;       // the first group of each class, as bits
    int count() const { return int(sizes.size()); }

    void find(const Axis& axis, const std::vector<int32_t>& splits) {
        of.assign(size_t(axis.groups()), 0);
        if (axis.ordered)
            cut(axis, splits);
        else
            for (const int32_t mask : splits) refine(axis, &axis.masks[size_t(mask) * axis.words]);
        number(axis);
    }

  private:
    std::vector<uint64_t> edges;
    std::vector<int32_t> names;

    // A class is a run of groups without an edge of any mask: possibly finer than necessary.
    void cut(const Axis& axis, const std::vector<int32_t>& splits) {
        edges.assign(axis.words, 0);
        for (const int32_t mask : splits) {
            uint64_t carry = 0;
            for (size_t w = 0; w < axis.words; ++w) {
                const uint64_t bits = axis.masks[size_t(mask) * axis.words + w];
                edges[w] |= bits ^ (bits << 1 | carry);
                carry = bits >> 63;
            }
        }
        for (int g = 1; g < axis.groups(); ++g)
            of[size_t(g)] = of[size_t(g - 1)] + int32_t(edges[size_t(g) / 64] >> g % 64 & 1);
    }

    // Split each class by a mask; classes get new numbers in the order of their first groups.
    void refine(const Axis& axis, const uint64_t* mask) {
        names.assign(2 * of.size(), -1);
        int32_t next = 0;
        for (size_t g = 0; g < of.size(); ++g) {
            int32_t& name = names[2 * size_t(of[g]) + (mask[g / 64] >> g % 64 & 1)];
            if (name < 0) name = next++;
            of[g] = name;
        }
        (void)axis;
    }

    void number(const Axis& axis) {
        sizes.clear();
        first.clear();
        group.clear();
        leaders.assign(axis.words, 0);
        for (size_t g = 0; g < of.size(); ++g) {
            if (of[g] == count()) {
                sizes.push_back(0);
                first.push_back(axis.first[g]);
                group.push_back(int32_t(g));
                leaders[g / 64] |= uint64_t(1) << g % 64;
            }
            sizes[size_t(of[g])] += axis.sizes[g];
        }
    }
};

}  // namespace forest
}  // namespace feta

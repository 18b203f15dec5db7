// Classes: groups of values on one axis that no box of a person distinguishes.
#pragma once
#include <bit>

#include "forest_boxes.hpp"

namespace feta {
namespace forest {

class Classes {
  public:
    std::vector<uint64_t> sizes, first;  // by class: the number of values, and the lowest index
    std::vector<int32_t> group;          // by class: its first group
    std::vector<int32_t> of;             // by group: its class
    std::vector<uint64_t> leaders;       // the first group of each class, as bits
    size_t count() const { return sizes.size(); }

    // `splits` are the sets of groups of all boxes.
    void find(const Axis& axis, const BoxTable& boxes, const std::vector<uint32_t>& splits) {
        of.assign(size_t(axis.groups()), 0);
        if (axis.ordered)
            cut(axis, boxes, splits);
        else
            refine_all(boxes, splits);
        number(axis);
    }

    // Call visit(class) for each class of a box; `groups` are its groups on this axis.
    template <class Visit> void for_each(const uint64_t* groups, Visit visit) const {
        for (size_t w = 0; w < leaders.size(); ++w)
            for (uint64_t set = groups[w] & leaders[w]; set; set &= set - 1)
                visit(size_t(of[64 * w + size_t(std::countr_zero(set))]));
    }

    // Call visit(class, begins) where a run of classes of a box begins or ends.
    template <class Visit> void for_each_edge(const uint64_t* groups, Visit visit) const {
        bool inside = false;
        for (size_t w = 0; w < leaders.size(); ++w)
            for (uint64_t rest = leaders[w];;) {
                const uint64_t hits = rest & (inside ? ~groups[w] : groups[w]);
                if (!hits) break;
                inside = !inside;
                visit(size_t(of[64 * w + size_t(std::countr_zero(hits))]), inside);
                rest &= ~((hits & -hits) - 1);
            }
    }

  private:
    std::vector<uint64_t> edges;
    std::vector<int32_t> names;

    // A class is a run of groups without an edge of any set: possibly finer than necessary.
    void cut(const Axis& axis, const BoxTable& boxes, const std::vector<uint32_t>& splits) {
        edges.assign(axis.words, 0);
        for (const uint32_t split : splits) {
            const uint64_t* set = boxes.set(split);
            uint64_t carry = 0;
            for (size_t w = 0; w < axis.words; ++w) {
                const uint64_t bits = set[w];
                edges[w] |= bits ^ (bits << 1 | carry);
                carry = bits >> 63;
            }
        }
        for (size_t g = 1; g < of.size(); ++g)
            of[g] = of[g - 1] + int32_t(edges[g / 64] >> g % 64 & 1);
    }

    void refine_all(const BoxTable& boxes, const std::vector<uint32_t>& splits) {
        for (const uint32_t split : splits)
            if (refine(boxes.set(split)) == of.size()) return;
    }

    // Split each class by a set; classes get new numbers in the order of their first groups.
    size_t refine(const uint64_t* set) {
        names.assign(2 * of.size(), -1);
        int32_t next = 0;
        for (size_t g = 0; g < of.size(); ++g) {
            int32_t& name = names[2 * size_t(of[g]) + (set[g / 64] >> g % 64 & 1)];
            if (name < 0) name = next++;
            of[g] = name;
        }
        return size_t(next);
    }

    void number(const Axis& axis) {
        sizes.clear();
        first.clear();
        group.clear();
        leaders.assign(axis.words, 0);
        for (size_t g = 0; g < of.size(); ++g) {
            if (size_t(of[g]) == count()) {
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

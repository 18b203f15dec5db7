// Boxes: the leaves that counterparts of one person reach, and their boxes.
#pragma once
#include "forest_leaf_sets.hpp"

namespace feta {
namespace forest {

class Boxes {
  public:
    Boxes(const Layout& from, const LeafSets& with)
        : layout(from), splits(from.spec.axes.size()), leaf_sets(with),
          slots(from.slots.count, always_right), seen(from.boxes.count(), 0),
          seen_sets(from.boxes.n_sets(), 0) {}

    // Find the leaves of all counterparts, tree by tree.
    void collect(const double* person) {
        reach(person);
        list();
    }

    // The same in two steps. `reached` has one bit per leaf.
    void reach(const double* person) {
        row = person;
        has_slots = false;
        if (!leaf_sets.intersect(person, chosen, bits)) follow();
    }
    const std::vector<uint64_t>& reached() const { return bits; }
    void list() {
        list_leaves();
        find_splits();
    }

    // Return the leaf of one counterpart in a tree; `groups` are its groups by axis.
    int32_t leaf(size_t tree, const int32_t* groups) {
        read_slots();
        uint32_t at = layout.roots[tree];
        for (;;) {
            for (uint32_t next; (next = layout.next(at, slots.data())) != at;) at = next;
            if (layout.is_leaf(at)) return layout.sources[layout.leaf_number(at)];
            const Mask& mask = layout.mask(at);
            const int32_t group = groups[mask.axis];
            const uint64_t* left = layout.spec.axes[mask.axis].mask(mask.number);
            at = left[group / 64] >> group % 64 & 1 ? Layout::left_of_axis(at)
                                                    : layout.right_of_axis(at);
        }
    }

    size_t count() const { return n_leaves; }
    const Leaf& operator[](size_t index) const { return leaves[index]; }
    int32_t source(size_t index) const { return layout.sources[numbers[index]]; }

    const Layout& layout;
    std::vector<uint32_t> different;            // boxes, each once
    std::vector<std::vector<uint32_t>> splits;  // by axis: sets of groups, each once

  private:
    const LeafSets& leaf_sets;
    const double* row = nullptr;
    bool has_slots = false;
    std::vector<uint16_t> slots;
    std::vector<const uint64_t*> chosen;
    std::vector<uint64_t> bits;     // one per leaf: whether it is reached
    std::vector<uint32_t> numbers;  // of reached leaves, ascending
    std::vector<Leaf> leaves;       // the same, next to each other
    size_t n_leaves = 0;
    std::vector<uint32_t> wave, later;  // nodes
    std::vector<uint32_t> seen;         // by box: the last epoch
    std::vector<uint32_t> seen_sets;    // by set of groups
    uint32_t epoch = 0;

    void read_slots() {
        if (!has_slots) layout.slots.read(row, slots);
        has_slots = true;
    }

    // Follow all trees at once; at a sensitive test, follow both children.
    void follow() {
        read_slots();
        bits.assign((layout.leaves.size() + 63) / 64, 0);
        wave = layout.roots;
        while (!wave.empty()) {
            advance();
            later.clear();
            for (const uint32_t at : wave)
                if (layout.is_leaf(at)) {
                    const uint32_t number = layout.leaf_number(at);
                    bits[number / 64] |= uint64_t(1) << number % 64;
                } else
                    later.insert(later.end(), {Layout::left_of_axis(at), layout.right_of_axis(at)});
            std::swap(wave, later);
        }
    }

    // Follow shared tests. Eight ways at once, because each step waits for memory.
    void advance() {
        constexpr size_t ways = 8;
        uint32_t* at = wave.data();
        const size_t count_at = wave.size();
        const uint16_t* values = slots.data();
        size_t item = 0;
        for (; item + ways <= count_at; item += ways) {
            for (size_t next = item + 2 * ways; next < std::min(item + 3 * ways, count_at); ++next)
                layout.prefetch(at[next]);
            std::array<uint32_t, ways> node;
            std::copy_n(at + item, ways, node.begin());
            for (uint32_t moved = 1; moved;) {
                moved = 0;
                for (uint32_t& way : node) {
                    const uint32_t next = layout.next(way, values);
                    moved |= next ^ way;
                    way = next;
                }
            }
            std::copy_n(node.begin(), ways, at + item);
        }
        for (; item < count_at; ++item)
            for (uint32_t next; (next = layout.next(at[item], values)) != at[item];)
                at[item] = next;
    }

    // List the leaves in ascending order, and their boxes.
    void list_leaves() {
        if (++epoch == 0) {
            std::fill(seen.begin(), seen.end(), 0);
            std::fill(seen_sets.begin(), seen_sets.end(), 0);
            epoch = 1;
        }
        n_leaves = 0;
        for (size_t w = 0; w < bits.size(); ++w) {
            if (numbers.size() < n_leaves + 64) numbers.resize(2 * (n_leaves + 64));
            n_leaves += list_word(bits[w], uint32_t(64 * w), &numbers[n_leaves]);
        }
        if (leaves.size() < n_leaves) leaves.resize(numbers.size());
        copy_leaves();
    }

    // List the leaves of one word; return their number.
    static size_t list_word(uint64_t word, uint32_t first, uint32_t* to) {
        size_t n = 0;
        for (; word; word &= word - 1) to[n++] = first + uint32_t(std::countr_zero(word));
        return n;
    }

    // Copy the leaves, and list their boxes. Leaves are requested early, because memory is slow and
    // nothing predicts which boxes are new.
    void copy_leaves() {
        constexpr size_t ahead = 24;
        const Leaf* all = layout.leaves.data();
        different.clear();
        for (size_t n = 0; n < n_leaves; ++n) {
            if (n + ahead < n_leaves) __builtin_prefetch(&all[numbers[n + ahead]]);
            leaves[n] = all[numbers[n]];
            const uint32_t box = leaves[n].box;
            if (seen[box] == epoch) continue;
            seen[box] = epoch;
            different.push_back(box);
        }
    }

    void find_splits() {
        for (auto& sets : splits) sets.clear();
        for (const uint32_t box : different)
            for (uint32_t axes = layout.boxes.axes_of(box); axes; axes &= axes - 1) {
                const size_t axis = size_t(std::countr_zero(axes));
                const uint32_t set = layout.boxes.set_of(box, axis);
                if (seen_sets[set] == epoch) continue;
                seen_sets[set] = epoch;
                splits[axis].push_back(set);
            }
    }
};

}  // namespace forest
}  // namespace feta

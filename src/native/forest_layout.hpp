// Layout: the nodes of an ensemble in eight bytes each, and its leaves with their boxes.
//
// The left child of a node follows it. Leaves and tests of sensitive axes lead to themselves, so
// that several trees can be followed in one loop without branches. A second word follows them: a
// leaf's number, or a sensitive test's mask and right child. Leaves are numbered depth first, tree
// by tree, so that the leaves of a subtree are a range. Sensitive tests that the tests above them
// decide are left out.
#pragma once
#include <array>

#include "forest_box_table.hpp"
#include "forest_slots.hpp"

namespace feta {
namespace forest {

// A node: slot (20 bits), rank (16 bits), right child (28 bits).
constexpr int rank_bits = 16;
constexpr uint64_t max_nodes = uint64_t(1) << (64 - slot_bits - rank_bits);

// The groups of a sensitive axis that go left.
struct Mask {
    uint32_t axis = 0, number = 0;
};

struct Leaf {
    int64_t value = 0;  // if there is one output
    uint32_t box = 0, tree = 0;
};

class Layout {
  public:
    explicit Layout(const ForestSpec& from) : spec(from), boxes(from), slots(from) {
        for (size_t a = 0; a < spec.axes.size(); ++a) add_masks(a);
        copy_nodes();
    }

    // Return the next node on the way of a person; leaves and sensitive tests return themselves.
    uint32_t next(uint32_t at, const uint16_t* values) const {
        const uint64_t node = nodes[at];
        return values[node & (max_slots - 1)] <= rank(at) ? at + 1 : right(at);
    }

    void prefetch(uint32_t at) const { __builtin_prefetch(&nodes[at]); }

    size_t slot(uint32_t at) const { return size_t(nodes[at] & (max_slots - 1)); }
    uint32_t rank(uint32_t at) const { return uint32_t(nodes[at] >> slot_bits & 0xffff); }
    uint32_t right(uint32_t at) const { return uint32_t(nodes[at] >> (slot_bits + rank_bits)); }

    // Return whether a node is a leaf or a sensitive test.
    bool leads_to_itself(uint32_t at) const { return slot(at) == 0; }
    // Return whether a node that leads to itself is a leaf.
    bool is_leaf(uint32_t at) const { return rank(at) == 0; }
    uint32_t leaf_number(uint32_t at) const { return uint32_t(nodes[at + 1]); }
    const Mask& mask(uint32_t at) const { return masks[size_t(nodes[at + 1] >> 32)]; }
    static uint32_t left_of_axis(uint32_t at) { return at + 2; }
    uint32_t right_of_axis(uint32_t at) const { return uint32_t(nodes[at + 1]); }

    // Store the values of leaves, if there is one output.
    void set_values(const std::vector<int64_t>& values) {
        for (size_t n = 0; n < leaves.size(); ++n) leaves[n].value = values[size_t(sources[n])];
    }

    const ForestSpec& spec;
    BoxTable boxes;
    Slots slots;
    std::vector<uint32_t> roots;
    std::vector<Leaf> leaves;
    std::vector<int32_t> sources;       // by leaf: its index in the values
    std::vector<size_t> leaves_before;  // by tree: the first of its leaves; then the end

  private:
    std::vector<uint64_t> nodes;
    std::vector<Mask> masks;         // of all axes
    std::vector<uint64_t> left_box;  // (masks, words): the box of everybody who goes left
    std::vector<size_t> first_mask;  // by axis

    struct Pending {
        int32_t node;
        uint32_t parent;  // whose right child it is
        uint32_t box;
    };
    static constexpr uint32_t none = UINT32_MAX;

    void add_masks(size_t a) {
        const Axis& axis = spec.axes[a];
        const Field& field = boxes.fields[a];
        first_mask.push_back(masks.size());
        for (size_t m = 0; m < axis.n_masks(); ++m) {
            masks.push_back({uint32_t(a), uint32_t(m)});
            std::vector<uint64_t> left = boxes.full;
            for (size_t w = 0; w < field.words; ++w) {
                const uint64_t own = field.words == 1 ? field.bits : boxes.full[field.word + w];
                left[field.word + w] &= axis.mask(m)[w] << field.shift | ~own;
            }
            left_box.insert(left_box.end(), left.begin(), left.end());
        }
    }

    // Copy each tree depth first.
    void copy_nodes() {
        std::vector<Pending> stack;
        for (const int32_t root : spec.roots) {
            roots.push_back(uint32_t(nodes.size()));
            leaves_before.push_back(leaves.size());
            stack.push_back({root, none, 0});
            while (!stack.empty()) {
                const Pending top = stack.back();
                stack.pop_back();
                copy_node(top, stack);
            }
        }
        leaves_before.push_back(leaves.size());
    }

    void copy_node(const Pending& top, std::vector<Pending>& stack) {
        const Node& node = spec.nodes[size_t(top.node)];
        uint32_t left = top.box, right = top.box;
        if (node.test == Test::axis) {
            std::tie(left, right) = sides(mask_of(node), top.box);
            if (left == top.box || right == top.box) {  // the other side is empty
                stack.push_back({left == top.box ? node.left : node.right, top.parent, top.box});
                return;
            }
        }
        const uint32_t at = uint32_t(nodes.size());
        if (nodes.size() + 2 >= max_nodes)
            throw std::length_error("too many nodes for the compiled kernel");
        if (top.parent != none) set_right(top.parent, at);
        append(node, at, top.box);
        if (node.test == Test::leaf) return;
        stack.push_back({node.right, at, right});
        stack.push_back({node.left, none, left});
    }

    size_t mask_of(const Node& node) const {
        return first_mask[size_t(node.axis)] + size_t(node.source);
    }

    // Divide a box by a test; a side that is empty is not numbered.
    std::pair<uint32_t, uint32_t> sides(size_t mask, uint32_t box) {
        const Field& field = boxes.fields[masks[mask].axis];
        const uint64_t *bits = boxes.bits(box), *goes_left = &left_box[mask * boxes.words];
        std::vector<uint64_t> left(bits, bits + boxes.words), right = left;
        uint64_t some_left = 0, some_right = 0;
        for (size_t w = field.word; w < field.word + field.words; ++w) {
            const uint64_t own = field.words == 1 ? field.bits : ~uint64_t(0);
            left[w] &= goes_left[w];
            right[w] &= ~(goes_left[w] & own);
            some_left |= left[w] & own;
            some_right |= right[w] & own;
        }
        if (!some_left || !some_right) return {some_left ? box : none, some_left ? none : box};
        const uint32_t first = boxes.number(left);
        return {first, boxes.number(right)};
    }

    void append(const Node& node, uint32_t at, uint32_t box) {
        if (node.test == Test::leaf) {
            nodes.insert(nodes.end(), {pack(0, 0, at), uint64_t(leaves.size())});
            leaves.push_back({0, box, uint32_t(roots.size() - 1)});
            sources.push_back(node.source);
        } else if (node.test == Test::axis)
            nodes.insert(nodes.end(), {pack(0, 1, at), uint64_t(mask_of(node)) << 32});
        else {
            const auto [of, with] = slots.test(node);
            nodes.push_back(pack(of, with, at));
        }
    }

    static uint64_t pack(size_t slot, size_t rank, uint32_t to) {
        return uint64_t(slot) | uint64_t(rank) << slot_bits |
               uint64_t(to) << (slot_bits + rank_bits);
    }

    void set_right(uint32_t parent, uint32_t child) {
        const uint64_t low = nodes[parent] & ((uint64_t(1) << (slot_bits + rank_bits)) - 1);
        if (leads_to_itself(parent))
            nodes[parent + 1] |= child;
        else
            nodes[parent] = low | uint64_t(child) << (slot_bits + rank_bits);
    }
};

}  // namespace forest
}  // namespace feta

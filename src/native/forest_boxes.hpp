// Boxes: the counterparts of one person that reach the same leaf of a tree.
#pragma once
#include <algorithm>
#include <cstring>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

class Boxes {
  public:
    explicit Boxes(const ForestSpec& from) : spec(from), indices(spec.domains.size()) {
        for (const Axis& axis : spec.axes) words = std::max(words, axis.word + axis.words);
        full.assign(words, 0);
        for (const Axis& axis : spec.axes)
            for (int group = 0; group < axis.groups(); ++group)
                full[axis.word + size_t(group) / 64] |= uint64_t(1) << group % 64;
        for (const Axis& axis : spec.axes)
            seen.emplace_back(axis.masks.size() / axis.words, uint32_t(0));
        splits.resize(spec.axes.size());
    }

    // Walk all trees; at a sensitive node, follow both children.
    void collect(const double* person) {
        row = person;
        read_domains();
        leaf_of.clear();
        axes_of.clear();
        bits_of.clear();
        first_of_tree.clear();
        for (auto& masks : splits) masks.clear();
        visited = 0;
        ++epoch;
        box = full;
        restricted = 0;
        for (const int32_t root : spec.roots) {
            first_of_tree.push_back(uint32_t(leaf_of.size()));
            walk(root);
        }
        first_of_tree.push_back(uint32_t(leaf_of.size()));
    }

    // Return the leaf of one counterpart in a tree; `groups` are its groups by axis.
    int32_t leaf(int32_t root, const int32_t* groups) const {
        const Node* node = &spec.nodes[size_t(root)];
        while (node->test != Test::leaf) {
            bool left;
            if (node->test == Test::axis) {
                const int32_t group = groups[node->axis];
                left = mask(*node)[group / 64] >> group % 64 & 1;
            } else
                left = goes_left(*node);
            node = &spec.nodes[size_t(left ? node->left : node->right)];
        }
        return node->source;
    }

    size_t count() const { return leaf_of.size(); }
    const uint64_t* bits(size_t number) const { return &bits_of[number * words]; }

    const ForestSpec& spec;
    size_t words = 0;
    std::vector<uint64_t> full;                // all groups of all axes
    std::vector<int32_t> leaf_of;              // by box
    std::vector<uint32_t> axes_of;             // by box: the axes that restrict it, as bits
    std::vector<uint32_t> first_of_tree;       // the first box of each tree, and the end
    std::vector<std::vector<int32_t>> splits;  // by axis: masks that split a box
    uint64_t visited = 0;                      // nodes

  private:
    const double* row = nullptr;
    std::vector<int32_t> indices;  // by domain: the person's value
    std::vector<uint64_t> box, bits_of;
    uint32_t restricted = 0, epoch = 0;
    std::vector<std::vector<uint32_t>> seen;  // by axis and mask: the last epoch

    const uint64_t* mask(const Node& node) const {
        const Axis& axis = spec.axes[size_t(node.axis)];
        return &axis.masks[size_t(node.source) * axis.words];
    }

    bool goes_left(const Node& node) const {
        if (node.test == Test::member)
            return spec.members[size_t(node.extra + indices[size_t(node.source)])];
        if (node.extra >= 0 && row[node.extra] == 1) return node.missing_left;
        return row[node.source] <= node.cut;
    }

    void read_domains() {
        for (size_t d = 0; d < spec.domains.size(); ++d) {
            const Domain& domain = spec.domains[d];
            if (domain.numbers.empty()) {
                const double* first = row + domain.column;
                indices[d] = int32_t(std::max_element(first, first + domain.width) - first);
                continue;
            }
            const auto& numbers = domain.numbers;
            const auto at = std::lower_bound(numbers.begin(), numbers.end(), row[domain.column]);
            const bool missing = domain.flag >= 0 && row[domain.flag] == 1;
            indices[d] = missing ? int32_t(numbers.size())
                                 : std::min(int32_t(at - numbers.begin()),
                                            int32_t(numbers.size()) - 1);
        }
    }

    void walk(int32_t at) {
        const Node* node = &spec.nodes[size_t(at)];
        for (++visited; node->test != Test::leaf; ++visited) {
            if (node->test != Test::axis) {
                node = &spec.nodes[size_t(goes_left(*node) ? node->left : node->right)];
                continue;
            }
            const Axis& axis = spec.axes[size_t(node->axis)];
            const uint64_t* left = mask(*node);
            uint64_t* part = &box[axis.word];
            uint64_t some_left = 0, some_right = 0;
            for (size_t w = 0; w < axis.words; ++w) {
                some_left |= part[w] & left[w];
                some_right |= part[w] & ~left[w];
            }
            if (some_left && some_right) return split(*node, axis);
            node = &spec.nodes[size_t(some_left ? node->left : node->right)];
        }
        leaf_of.push_back(node->source);
        axes_of.push_back(restricted);
        bits_of.insert(bits_of.end(), box.begin(), box.end());
    }

    void split(const Node& node, const Axis& axis) {
        uint32_t& last = seen[size_t(node.axis)][size_t(node.source)];
        if (last != epoch) {
            last = epoch;
            splits[size_t(node.axis)].push_back(node.source);
        }
        const uint64_t* left = mask(node);
        const uint32_t before = restricted;
        restricted |= uint32_t(1) << node.axis;
        std::vector<uint64_t>& kept = saved(axis.words);
        const size_t offset = kept.size() - axis.words;
        std::copy_n(&box[axis.word], axis.words, &kept[offset]);
        for (size_t w = 0; w < axis.words; ++w) box[axis.word + w] &= left[w];
        walk(node.left);
        for (size_t w = 0; w < axis.words; ++w) box[axis.word + w] = kept[offset + w] & ~left[w];
        walk(node.right);
        std::copy_n(&kept[offset], axis.words, &box[axis.word]);
        kept.resize(offset);
        restricted = before;
    }

    // A stack of saved bits, with room for one more axis.
    std::vector<uint64_t> stack;
    std::vector<uint64_t>& saved(size_t size) {
        stack.resize(stack.size() + size);
        return stack;
    }
};

}  // namespace forest
}  // namespace feta

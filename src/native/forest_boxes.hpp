// Boxes: the counterparts of one person that reach the same leaf of a tree.
#pragma once
#include "forest_layout.hpp"

namespace feta {
namespace forest {

class Boxes {
  public:
    explicit Boxes(const Layout& from)
        : layout(from), slots(from.n_slots, always_right), seen(from.masks.size(), 0) {
        splits.resize(layout.spec.axes.size());
    }

    // Follow all trees at once; at a test of a sensitive axis, follow both children.
    void collect(const double* person) {
        layout.read(person, slots);
        for (auto& masks : splits) masks.clear();
        if (++epoch == 0) std::fill(seen.begin(), seen.end(), epoch++);
        n_boxes = visited = 0;
        start();
        while (wave.count) {
            advance();
            visited += wave.count;
            later.reserve(2 * wave.count + 1, layout.words);
            later.count = 0;
            found.reserve(n_boxes + wave.count + 1, layout.words);
            values.resize(found.at.size());
            switch (layout.words) {
                case 1: handle_all<1>(); break;
                case 2: handle_all<2>(); break;
                case 3: handle_all<3>(); break;
                default: handle_all<0>();
            }
            std::swap(wave, later);
        }
    }

    // Return the leaf of one counterpart in a tree; `groups` are its groups by axis.
    int32_t leaf(size_t tree, const int32_t* groups) const {
        uint32_t at = layout.roots[tree];
        for (;;) {
            for (uint32_t next; (next = layout.next(at, slots.data())) != at;) at = next;
            if (layout.is_leaf(at)) return layout.leaf_of[at];
            const uint64_t second = layout.second(at);
            const Mask& mask = layout.masks[Layout::mask_of(second)];
            const int32_t group = groups[mask.axis];
            const uint64_t* left = layout.spec.axes[mask.axis].mask(mask.number);
            at =
                left[group / 64] >> group % 64 & 1 ? Layout::left_of(at) : Layout::right_of(second);
        }
    }

    size_t count() const { return n_boxes; }
    int32_t leaf_of(size_t box) const { return layout.leaf_of[found.at[box]]; }
    const int64_t* value(size_t box) const { return &values[box]; }  // if the layout has values
    uint32_t tree_of(size_t box) const { return found.tree[box]; }
    const uint64_t* bits(size_t box) const { return &found.bits[box * layout.words]; }

    const Layout& layout;
    std::vector<std::vector<uint32_t>> splits;  // by axis: masks that split a box
    uint64_t visited = 0;                       // parts of trees between sensitive tests

  private:
    // Nodes or leaves, each with its tree and the counterparts that reach it.
    struct Items {
        std::vector<uint32_t> at, tree;
        std::vector<uint64_t> bits;
        size_t count = 0;
        void reserve(size_t size, size_t words) {
            if (at.size() >= size) return;
            at.resize(2 * size);
            tree.resize(2 * size);
            bits.resize(2 * size * words);
        }
    };
    Items wave, later, found;
    std::vector<int64_t> values;  // of the leaves found
    size_t n_boxes = 0;
    std::vector<uint16_t> slots;
    std::vector<uint32_t> seen;  // by mask: the last epoch
    uint32_t epoch = 0;

    void start() {
        wave.count = layout.roots.size();
        wave.reserve(wave.count, layout.words);
        std::copy(layout.roots.begin(), layout.roots.end(), wave.at.begin());
        for (size_t t = 0; t < wave.count; ++t) {
            wave.tree[t] = uint32_t(t);
            std::copy_n(layout.full.begin(), layout.words,
                        wave.bits.begin() + ptrdiff_t(t * layout.words));
        }
    }

    // Follow shared tests. Eight ways at once, because each step waits for memory.
    void advance() {
        constexpr size_t ways = 8;
        uint32_t* at = wave.at.data();
        const size_t count = wave.count;
        const uint16_t* values = slots.data();
        size_t item = 0;
        for (; item + ways <= count; item += ways) {
            for (size_t next = item + 2 * ways; next < std::min(item + 3 * ways, count); ++next)
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
        for (; item < count; ++item)
            for (uint32_t next; (next = layout.next(at[item], values)) != at[item];)
                at[item] = next;
    }

    // Record leaves, and divide the counterparts at sensitive tests; without branches, because
    // nothing predicts them. `Words` is the number of words of a box, or 0 for any.
    template <size_t Words> void handle_all() {
        const size_t words = Words ? Words : layout.words;
        const uint32_t *wave_at = wave.at.data(), *wave_tree = wave.tree.data();
        const uint64_t *bits = wave.bits.data(), *all_masks = layout.mask_bits.data();
        Writer to_later(later, 0, words), to_found(found, n_boxes, words);
        for (size_t item = 0; item < wave.count; ++item, bits += words) {
            const uint32_t at = wave_at[item], tree = wave_tree[item];
            const bool is_leaf = layout.is_leaf(at);
            const uint64_t second = layout.second(at);
            values[to_found.count] = int64_t(second);
            to_found.start(at, tree);
            for (size_t w = 0; w < words; ++w) to_found.bits[w] = bits[w];
            to_found.end(is_leaf);
            const size_t number = is_leaf ? 0 : Layout::mask_of(second);
            const uint64_t* left = all_masks + number * 3 * words;
            const uint64_t *right = left + words, *field = right + words;
            uint64_t some_left = 0, some_right = 0;
            for (size_t w = 0; w < words; ++w) some_left |= bits[w] & left[w] & field[w];
            for (size_t w = 0; w < words; ++w) some_right |= bits[w] & right[w] & field[w];
            if (some_left && some_right && !is_leaf && seen[number] != epoch) split(number);
            to_later.start(Layout::left_of(at), tree);
            for (size_t w = 0; w < words; ++w) to_later.bits[w] = bits[w] & left[w];
            to_later.end((some_left != 0) & !is_leaf);
            to_later.start(Layout::right_of(second), tree);
            for (size_t w = 0; w < words; ++w) to_later.bits[w] = bits[w] & right[w];
            to_later.end((some_right != 0) & !is_leaf);
        }
        later.count = to_later.count;
        n_boxes = to_found.count;
    }

    // Writes items one after the other; an invalid one is overwritten by the next.
    struct Writer {
        uint32_t *at, *tree;
        uint64_t* bits;
        size_t count, words;
        Writer(Items& to, size_t from, size_t n_words)
            : at(to.at.data()), tree(to.tree.data()), bits(to.bits.data() + from * n_words),
              count(from), words(n_words) {}
        void start(uint32_t node, uint32_t of) {
            at[count] = node;
            tree[count] = of;
        }
        void end(bool valid) {
            count += valid;
            bits += valid ? words : 0;
        }
    };

    void split(size_t mask) {
        seen[mask] = epoch;
        splits[layout.masks[mask].axis].push_back(layout.masks[mask].number);
    }
};

}  // namespace forest
}  // namespace feta

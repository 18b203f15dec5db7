// Layout: the nodes of an ensemble in eight bytes each, and a person's shared columns as ranks.
//
// A test of a shared column compares a small integer of the person, a slot, with a rank. Slots are
// computed once per person: the number of cuts below a column's value, or a row of a table for a
// domain. The left child of a node follows it. Leaves and tests of sensitive axes lead to
// themselves, so that several trees can be followed in one loop without branches. A second word
// follows them: a leaf's value, or a sensitive test's mask and right child.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <stdexcept>
#include <tuple>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

// A node: slot (20 bits), rank (16 bits), right child (28 bits).
constexpr int slot_bits = 20, rank_bits = 16;
constexpr uint64_t max_slots = uint64_t(1) << slot_bits;
constexpr uint64_t max_nodes = uint64_t(1) << (64 - slot_bits - rank_bits);
// Ranks of one slot; a column with more cuts has several slots. The value above all ranks goes
// right everywhere.
constexpr size_t max_ranks = 65534;
constexpr uint16_t always_right = 65535;

// The groups of a sensitive axis that go left.
struct Mask {
    uint32_t axis = 0, number = 0;
};

// The place of an axis in the words of a box.
struct Field {
    size_t word = 0, words = 1;
    int shift = 0;
    uint64_t bits = 0;  // of an axis within one word
};

class Layout {
  public:
    explicit Layout(const ForestSpec& from) : spec(from) {
        place_axes();
        number_slots();
        copy_nodes();
    }

    // Return the next node on the way of a person; leaves and sensitive tests return themselves.
    uint32_t next(uint32_t at, const uint16_t* slots) const {
        const uint64_t node = nodes[at];
        const uint32_t rank = uint32_t(node >> slot_bits & 0xffff);
        return slots[node & (max_slots - 1)] <= rank ? at + 1
                                                     : uint32_t(node >> (slot_bits + rank_bits));
    }

    void prefetch(uint32_t at) const { __builtin_prefetch(&nodes[at]); }

    // Return whether a node that leads to itself is a leaf.
    bool is_leaf(uint32_t at) const { return (nodes[at] >> slot_bits & 0xffff) == 0; }

    // Return the second word of a leaf or of a sensitive test.
    uint64_t second(uint32_t at) const { return nodes[at + 1]; }
    static size_t mask_of(uint64_t second) { return size_t(second >> 32); }
    static uint32_t left_of(uint32_t at) { return at + 2; }
    static uint32_t right_of(uint64_t second) { return uint32_t(second); }

    // Store the values of leaves, if there is one output, for boxes that are leaves' values.
    void set_values(const std::vector<int64_t>& values) {
        for (const uint32_t leaf : leaf_nodes)
            nodes[leaf + 1] = uint64_t(values[size_t(leaf_of[leaf])]);
    }

    // Compute the slots of a person.
    void read(const double* row, std::vector<uint16_t>& slots) const {
        for (const Column& column : columns) {
            const bool missing = column.flag >= 0 && row[column.flag] == 1;
            const auto below =
                std::lower_bound(column.cuts.begin(), column.cuts.end(), row[column.column]);
            size_t rank = size_t(below - column.cuts.begin());
            for (size_t s = 0; s < column.slots; ++s) {
                uint16_t value = uint16_t(std::min(rank, max_ranks));
                if (missing) value = column.missing_left ? 0 : always_right;
                slots[column.first + s] = value;
                rank -= std::min(rank, max_ranks);
            }
        }
        for (const Sets& of : sets) {
            const size_t index = value_index(spec.domains[of.domain], row);
            std::copy_n(&of.values[index * of.starts.size()], of.starts.size(),
                        slots.begin() + ptrdiff_t(of.first));
        }
    }

    // Return the groups of one axis of a box; an axis that fits in 64 bits is shifted into `storage`.
    const uint64_t* groups(const uint64_t* box, size_t axis, uint64_t& storage) const {
        const Field& field = fields[axis];
        if (field.words > 1) return box + field.word;
        storage = (box[field.word] & field.bits) >> field.shift;
        return &storage;
    }

    // Return whether a box contains all groups of an axis.
    bool is_full(const uint64_t* box, size_t axis) const {
        const Field& field = fields[axis];
        if (field.words == 1) return (box[field.word] & field.bits) == field.bits;
        return std::equal(box + field.word, box + field.word + field.words, &full[field.word]);
    }

    const ForestSpec& spec;
    size_t words = 0, n_slots = 1;  // slot 0 belongs to nodes that lead to themselves
    std::vector<uint64_t> full;     // the box of all counterparts
    std::vector<Field> fields;      // by axis
    std::vector<Mask> masks;        // of all axes
    // (masks, 3, words): boxes of everybody who goes left, of everybody who goes right, and the
    // bits of the axis.
    std::vector<uint64_t> mask_bits;
    std::vector<uint32_t> roots;
    std::vector<int32_t> leaf_of;       // by node: the index of a leaf
    std::vector<uint32_t> leaf_nodes;   // tree by tree
    std::vector<size_t> leaves_before;  // by tree: the first of its leaves; then the end

  private:
    struct Column {  // tests of one number with the same direction of missing values
        int32_t column = 0, flag = -1;
        bool missing_left = false;
        std::vector<double> cuts;
        size_t first = 0, slots = 1;
    };
    struct Sets {  // tests of one domain
        size_t domain = 0;
        std::vector<int32_t> starts;  // of different sets in `members`
        size_t first = 0;
        std::vector<uint16_t> values;  // (values, sets): 0 goes left
    };
    using Key = std::tuple<int32_t, int32_t, bool>;

    std::vector<uint64_t> nodes;
    std::vector<Column> columns;
    std::vector<Sets> sets;
    std::vector<size_t> first_mask;  // by axis

    // Axes of at most 64 groups share words.
    void place_axes() {
        std::vector<int> used;
        for (const Axis& axis : spec.axes) {
            const int groups = axis.groups();
            Field field;
            field.words = axis.words;
            while (field.word < used.size() && (field.words > 1 || used[field.word] + groups > 64))
                ++field.word;
            used.resize(std::max(used.size(), field.word + field.words), 0);
            if (field.words == 1) {
                field.shift = used[field.word];
                field.bits = (groups == 64 ? ~uint64_t(0) : (uint64_t(1) << groups) - 1)
                             << field.shift;
                used[field.word] += groups;
            } else
                std::fill_n(used.begin() + ptrdiff_t(field.word), field.words, 64);
            fields.push_back(field);
        }
        words = used.size();
        full.assign(words, 0);
        for (size_t a = 0; a < spec.axes.size(); ++a) fill_axis(a);
        for (size_t a = 0; a < spec.axes.size(); ++a) add_masks(a);
        if (masks.empty()) {  // so that there is always a first one
            masks.emplace_back();
            mask_bits.resize(3 * words);
        }
    }

    void fill_axis(size_t a) {
        const Field& field = fields[a];
        if (field.words == 1)
            full[field.word] |= field.bits;
        else
            for (int g = 0; g < spec.axes[a].groups(); ++g)
                full[field.word + size_t(g) / 64] |= uint64_t(1) << g % 64;
    }

    void add_masks(size_t a) {
        const Axis& axis = spec.axes[a];
        const Field& field = fields[a];
        first_mask.push_back(masks.size());
        for (size_t m = 0; m < axis.n_masks(); ++m) {
            masks.push_back({uint32_t(a), uint32_t(m)});
            std::vector<uint64_t> left = full, right = full, own(words, 0);
            for (size_t w = 0; w < field.words; ++w) {
                const size_t at = field.word + w;
                const uint64_t bits = axis.mask(m)[w] << field.shift;
                own[at] = field.words == 1 ? field.bits : full[at];
                left[at] &= bits | ~own[at];
                right[at] &= ~bits | ~own[at];
            }
            for (const auto* part : {&left, &right, &own})
                mask_bits.insert(mask_bits.end(), part->begin(), part->end());
        }
    }

    void number_slots() {
        std::map<Key, std::vector<double>> cuts;
        std::map<int32_t, std::vector<int32_t>> starts;
        for (const Node& node : spec.nodes) {
            if (node.test == Test::number) cuts[key(node)].push_back(node.cut);
            if (node.test == Test::member) starts[node.source].push_back(node.extra);
        }
        for (auto& [of, values] : cuts) {
            Column column{std::get<0>(of), std::get<1>(of), std::get<2>(of),
                          unique(values),  n_slots,         1};
            column.slots = (column.cuts.size() + max_ranks - 1) / max_ranks;
            n_slots += column.slots;
            columns.push_back(std::move(column));
        }
        for (auto& [domain, values] : starts) {
            Sets of{size_t(domain), unique(values), n_slots, {}};
            n_slots += of.starts.size();
            for (size_t v = 0; v < n_values(spec.domains[of.domain]); ++v)
                for (const int32_t start : of.starts)
                    of.values.push_back(spec.members[size_t(start) + v] ? 0 : always_right);
            sets.push_back(std::move(of));
        }
        if (n_slots >= max_slots || spec.nodes.size() >= max_nodes)
            throw std::length_error("too many nodes or tests for the compiled kernel");
    }

    static Key key(const Node& node) {
        return {node.source, node.extra, node.extra >= 0 && node.missing_left};
    }

    template <class T> static std::vector<T> unique(std::vector<T>& values) {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        return values;
    }

    static size_t n_values(const Domain& domain) {
        return domain.numbers.empty() ? size_t(domain.width)
                                      : domain.numbers.size() + (domain.flag >= 0);
    }

    static size_t value_index(const Domain& domain, const double* row) {
        if (domain.numbers.empty()) {
            const double* first = row + domain.column;
            return size_t(std::max_element(first, first + domain.width) - first);
        }
        const auto& numbers = domain.numbers;
        if (domain.flag >= 0 && row[domain.flag] == 1) return numbers.size();
        const auto at = std::lower_bound(numbers.begin(), numbers.end(), row[domain.column]);
        return std::min(size_t(at - numbers.begin()), numbers.size() - 1);
    }

    // Copy each tree depth first.
    void copy_nodes() {
        struct Pending {
            int32_t node;
            uint32_t parent;  // whose right child it is
        };
        constexpr uint32_t none = UINT32_MAX;
        std::vector<Pending> stack;
        for (const int32_t root : spec.roots) {
            roots.push_back(uint32_t(nodes.size()));
            leaves_before.push_back(leaf_nodes.size());
            stack.push_back({root, none});
            while (!stack.empty()) {
                const Pending top = stack.back();
                stack.pop_back();
                const uint32_t at = uint32_t(nodes.size());
                if (nodes.size() + 2 >= max_nodes)
                    throw std::length_error("too many nodes for the compiled kernel");
                if (top.parent != none) set_right(top.parent, at);
                const Node& node = spec.nodes[size_t(top.node)];
                append(node, at);
                if (node.test == Test::leaf) continue;
                stack.push_back({node.right, at});
                stack.push_back({node.left, none});
            }
        }
        leaves_before.push_back(leaf_nodes.size());
        leaf_of.resize(nodes.size());
    }

    void append(const Node& node, uint32_t at) {
        if (node.test == Test::leaf) {
            nodes.insert(nodes.end(), {pack(0, 0, at), 0});
            leaf_nodes.push_back(at);
            leaf_of.resize(at + 1);
            leaf_of[at] = node.source;
        } else if (node.test == Test::axis) {
            const size_t mask = first_mask[size_t(node.axis)] + size_t(node.source);
            nodes.insert(nodes.end(), {pack(0, 1, at), uint64_t(mask) << 32});
        } else {
            const auto [slot, rank] =
                node.test == Test::number ? number_test(node) : member_test(node);
            nodes.push_back(pack(slot, rank, at));
        }
    }

    static uint64_t pack(size_t slot, size_t rank, uint32_t to) {
        return uint64_t(slot) | uint64_t(rank) << slot_bits |
               uint64_t(to) << (slot_bits + rank_bits);
    }

    void set_right(uint32_t parent, uint32_t child) {
        const uint64_t low = nodes[parent] & ((uint64_t(1) << (slot_bits + rank_bits)) - 1);
        if (low & (max_slots - 1))
            nodes[parent] = low | uint64_t(child) << (slot_bits + rank_bits);
        else
            nodes[parent + 1] |= child;
    }

    std::pair<size_t, size_t> number_test(const Node& node) const {
        const auto column = std::lower_bound(columns.begin(), columns.end(), key(node),
                                             [](const Column& a, const Key& b) {
                                                 return Key{a.column, a.flag, a.missing_left} < b;
                                             });
        const auto cut = std::lower_bound(column->cuts.begin(), column->cuts.end(), node.cut);
        const size_t rank = size_t(cut - column->cuts.begin());
        return {column->first + rank / max_ranks, rank % max_ranks};
    }

    std::pair<size_t, size_t> member_test(const Node& node) const {
        const auto of =
            std::lower_bound(sets.begin(), sets.end(), size_t(node.source),
                             [](const Sets& a, size_t domain) { return a.domain < domain; });
        const auto at = std::lower_bound(of->starts.begin(), of->starts.end(), node.extra);
        return {of->first + size_t(at - of->starts.begin()), 0};
    }
};

}  // namespace forest
}  // namespace feta

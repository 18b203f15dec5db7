// BoxTable: the different boxes of an ensemble. A box is the set of counterparts that the sensitive
// tests on the way to a leaf admit: one set of groups per axis, as bits.
#pragma once
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

// The place of an axis in the words of a box.
struct Field {
    size_t word = 0, words = 1;
    int shift = 0;
    uint64_t bits = 0;  // of an axis within one word
};

struct WordsHash {
    size_t operator()(const std::vector<uint64_t>& words) const {
        uint64_t hash = 0;
        for (const uint64_t word : words) {
            hash = (hash ^ word) * 0x9e3779b97f4a7c15;
            hash ^= hash >> 32;
        }
        return size_t(hash);
    }
};
using Numbers = std::unordered_map<std::vector<uint64_t>, uint32_t, WordsHash>;

class BoxTable {
  public:
    explicit BoxTable(const ForestSpec& from) : spec(from), sets(from.axes.size()) {
        place_axes();
        for (size_t a = 0; a < spec.axes.size(); ++a) fill_axis(a);
        number(full);  // the first box
    }

    const ForestSpec& spec;
    size_t words = 0;
    std::vector<uint64_t> full;  // the box of all counterparts
    std::vector<Field> fields;   // by axis

    // Return the number of a box, which is new or known.
    uint32_t number(const std::vector<uint64_t>& box) {
        const auto [known, is_new] = numbers.try_emplace(box, uint32_t(numbers.size()));
        if (is_new) append(box);
        return known->second;
    }

    size_t count() const { return axes.size(); }
    const uint64_t* bits(size_t box) const { return all_bits.data() + box * words; }
    // Return the axes that restrict a box, as bits.
    uint32_t axes_of(size_t box) const { return axes[box]; }
    // Return the number of a box's set of groups on an axis, for all axes together.
    uint32_t set_of(size_t box, size_t axis) const { return box_sets[box * sets.size() + axis]; }
    size_t n_sets() const { return set_places.size(); }
    const uint64_t* set(uint32_t number) const {
        const auto& [axis, at] = set_places[number];
        return &sets[axis].bits[at];
    }

    // Return the groups of one axis of a box; an axis that fits in 64 bits is shifted into
    // `storage`.
    const uint64_t* groups(const uint64_t* box, size_t axis, uint64_t& storage) const {
        const Field& field = fields[axis];
        if (field.words > 1) return box + field.word;
        storage = (box[field.word] & field.bits) >> field.shift;
        return &storage;
    }

  private:
    struct AxisSets {
        Numbers numbers;
        std::vector<uint64_t> bits;  // (sets, words of the axis)
    };
    std::vector<AxisSets> sets;  // by axis
    std::vector<std::pair<size_t, size_t>> set_places;
    Numbers numbers;
    std::vector<uint64_t> all_bits;  // (boxes, words)
    std::vector<uint32_t> axes;      // by box
    std::vector<uint32_t> box_sets;  // (boxes, axes)

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
    }

    void fill_axis(size_t a) {
        const Field& field = fields[a];
        if (field.words == 1)
            full[field.word] |= field.bits;
        else
            for (int g = 0; g < spec.axes[a].groups(); ++g)
                full[field.word + size_t(g) / 64] |= uint64_t(1) << g % 64;
    }

    void append(const std::vector<uint64_t>& box) {
        all_bits.insert(all_bits.end(), box.begin(), box.end());
        uint32_t restricting = 0;
        for (size_t a = 0; a < sets.size(); ++a) {
            restricting |= uint32_t(!is_full(box.data(), a)) << a;
            box_sets.push_back(number_set(box.data(), a));
        }
        axes.push_back(restricting);
    }

    uint32_t number_set(const uint64_t* box, size_t axis) {
        uint64_t storage;
        const uint64_t* first = groups(box, axis, storage);
        AxisSets& of = sets[axis];
        const std::vector<uint64_t> groups_of(first, first + fields[axis].words);
        const auto [known, is_new] = of.numbers.try_emplace(groups_of, uint32_t(n_sets()));
        if (is_new) {
            set_places.emplace_back(axis, of.bits.size());
            of.bits.insert(of.bits.end(), groups_of.begin(), groups_of.end());
        }
        return known->second;
    }

    // Return whether a box contains all groups of an axis.
    bool is_full(const uint64_t* box, size_t axis) const {
        const Field& field = fields[axis];
        if (field.words == 1) return (box[field.word] & field.bits) == field.bits;
        return std::equal(box + field.word, box + field.word + field.words, &full[field.word]);
    }
};

}  // namespace forest
}  // namespace feta

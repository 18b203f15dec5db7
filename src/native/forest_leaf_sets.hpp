// LeafSets: for each value of a shared attribute, the set of leaves that its tests admit.
//
// The leaves that some counterpart of a person reaches are the intersection of these sets, one per
// attribute. A set has one bit per leaf. No tree is followed.
#pragma once
#include <bit>
#include <cmath>

#include "forest_layout.hpp"

namespace feta {
namespace forest {

class LeafSets {
  public:
    explicit LeafSets(const Layout& from)
        : layout(from), n_words((from.leaves.size() + 63) / 64), tests(from.slots.count) {
        find_groups();
        size_t n_states = 0;
        for (const Group& group : groups) n_states += group.n_states;
        usable = usable && n_states * n_words <= from.spec.max_set_bytes / sizeof(uint64_t);
        if (!usable) return;
        list_tests();
        sets.resize(n_states * n_words);
        size_t state = 0;
        for (Group& group : groups) {
            group.sets = sets.data() + state * n_words;
            fill(group);
            state += group.n_states;
        }
        tests.clear();
    }

    // The sets of another one, with each leaf in a new place. They are not usable if both together
    // exceed the limit.
    LeafSets(const LeafSets& from, const std::vector<uint32_t>& places)
        : layout(from.layout), n_words(from.n_words), groups(from.groups) {
        usable =
            from.usable && from.sets.size() <= layout.spec.max_set_bytes / sizeof(uint64_t) / 2;
        if (!usable) return;
        sets.resize(from.sets.size());
        for (Group& group : groups) {
            const uint64_t* source = group.sets;
            group.sets = sets.data() + (source - from.sets.data());
            move(source, places, group);
        }
    }

    // Intersect the sets of a person. Return false if the sets do not cover the person's values.
    bool intersect(const double* row, std::vector<const uint64_t*>& chosen,
                   std::vector<uint64_t>& reached) const {
        if (!usable) return false;
        chosen.clear();
        for (const Group& group : groups) {
            const size_t state = group.state(layout.slots, row);
            if (state >= group.n_states) return false;
            chosen.push_back(group.sets + state * n_words);
        }
        reached.resize(n_words);
        if (chosen.empty())
            fill_all(reached.data());
        else
            intersect_all(chosen, reached.data());
        return true;
    }

  private:
    // A test that leaves nothing of one side: left leaves, then right ones.
    struct LeafTest {
        uint32_t rank, first, middle, last;
    };
    // An attribute whose values are numbered: a number, a domain, or columns of one category.
    struct Group {
        const Slots::Column* column = nullptr;
        const Slots::Sets* members = nullptr;
        size_t first = 0, n_states = 0;  // of a category: its first column, and their number
        std::vector<size_t> slots;
        uint64_t* sets = nullptr;  // (states, words)

        size_t state(const Slots& of, const double* row) const {
            if (members) return of.value_index(*members, row);
            if (!column) return category(row + first);
            if (!Slots::is_missing(*column, row)) return Slots::rank_of(*column, row);
            return column->missing_left ? 0 : column->cuts.size();
        }

        // Return the column that is 1, if the others are 0.
        size_t category(const double* columns) const {
            size_t found = n_states;
            double sum = 0;
            for (size_t c = 0; c < n_states; ++c) {
                found = columns[c] == 1 ? c : found;
                sum += std::abs(columns[c]);
            }
            return sum == 1 ? found : n_states;
        }
    };
    const Layout& layout;
    size_t n_words;
    bool usable = true;
    std::vector<Group> groups;
    std::vector<std::vector<LeafTest>> tests;  // by slot
    std::vector<uint64_t> sets;

    void find_groups() {
        std::map<int32_t, Group> categories;  // by number of the limits
        for (const Slots::Column& column : layout.slots.columns) {
            usable &= column.slots == 1;
            const int32_t category = column.flag < 0 ? category_of(column.column) : -1;
            if (category >= 0)
                categories[category].slots.push_back(column.first);
            else
                groups.push_back({&column, nullptr, 0, column.cuts.size() + 1, {column.first}, {}});
        }
        for (const Slots::Sets& of : layout.slots.sets) {
            std::vector<size_t> slots(of.starts.size());
            for (size_t s = 0; s < slots.size(); ++s) slots[s] = of.first + s;
            groups.push_back({nullptr, &of, 0, layout.slots.n_values(of), std::move(slots), {}});
        }
        for (const Limit& limit : layout.spec.limits) {
            const auto found = categories.find(limit.group);
            if (found == categories.end()) continue;
            Group& group = found->second;
            if (group.n_states++ == 0) group.first = size_t(limit.column);
            usable &= size_t(limit.column) + 1 == group.first + group.n_states;
        }
        for (auto& [number, group] : categories) groups.push_back(std::move(group));
    }

    int32_t category_of(int32_t column) const {
        for (const Limit& limit : layout.spec.limits)
            if (limit.column == column) return limit.group;
        return -1;
    }

    void list_tests() {
        struct Subtree {
            uint32_t at, last;  // the end of its leaves
        };
        std::vector<Subtree> stack;
        for (size_t tree = 0; tree < layout.roots.size(); ++tree) {
            stack.push_back({layout.roots[tree], uint32_t(layout.leaves_before[tree + 1])});
            while (!stack.empty()) {
                const auto [at, last] = stack.back();
                stack.pop_back();
                if (layout.leads_to_itself(at) && layout.is_leaf(at)) continue;
                const bool shared = !layout.leads_to_itself(at);
                const uint32_t left = shared ? at + 1 : Layout::left_of_axis(at);
                const uint32_t right = shared ? layout.right(at) : layout.right_of_axis(at);
                const uint32_t middle = first_leaf(right);
                if (shared)
                    tests[layout.slot(at)].push_back(
                        {layout.rank(at), first_leaf(left), middle, last});
                stack.push_back({right, last});
                stack.push_back({left, middle});
            }
        }
    }

    // Return the first leaf of a subtree.
    uint32_t first_leaf(uint32_t at) const {
        while (!(layout.leads_to_itself(at) && layout.is_leaf(at)))
            at = layout.leads_to_itself(at) ? Layout::left_of_axis(at) : at + 1;
        return layout.leaf_number(at);
    }

    void fill(const Group& group) const {
        std::vector<uint16_t> values(layout.slots.count);
        std::vector<double> row(size_t(layout.spec.columns));
        for (size_t state = 0; state < group.n_states; ++state) {
            if (group.column)
                values[group.slots[0]] = uint16_t(state);
            else if (group.members)
                std::copy_n(&group.members->values[state * group.slots.size()], group.slots.size(),
                            values.begin() + ptrdiff_t(group.members->first));
            else {
                row[group.first + state] = 1;
                layout.slots.read(row.data(), values);
                row[group.first + state] = 0;
            }
            uint64_t* set = group.sets + state * n_words;
            fill_all(set);
            for (const size_t slot : group.slots)
                for (const LeafTest& test : tests[slot])
                    if (values[slot] <= test.rank)
                        clear(set, test.middle, test.last);
                    else
                        clear(set, test.first, test.middle);
        }
    }

    // Sets of neighboring states are similar, so only their differences are moved.
    void move(const uint64_t* source, const std::vector<uint32_t>& places, Group& to) const {
        for (size_t state = 0; state < to.n_states; ++state) {
            const uint64_t* own = source + state * n_words;
            uint64_t* set = to.sets + state * n_words;
            if (state > 0) std::copy_n(set - n_words, n_words, set);
            for (size_t w = 0; w < n_words; ++w)
                for (uint64_t word = own[w] ^ (state > 0 ? own[w - n_words] : 0); word;
                     word &= word - 1) {
                    const uint32_t place = places[64 * w + size_t(std::countr_zero(word))];
                    set[place / 64] ^= uint64_t(1) << place % 64;
                }
        }
    }

    void fill_all(uint64_t* set) const {
        std::fill_n(set, n_words, ~uint64_t(0));
        const size_t rest = layout.leaves.size() % 64;
        if (rest) set[n_words - 1] = (uint64_t(1) << rest) - 1;
    }

    // Remove the leaves from `first` to before `last`, at least one.
    static void clear(uint64_t* set, uint32_t first, uint32_t last) {
        const size_t from = first / 64, to = (last - 1) / 64;
        const uint64_t low = ~uint64_t(0) << first % 64,
                       high = ~uint64_t(0) >> (63 - (last - 1) % 64);
        if (from == to) {
            set[from] &= ~(low & high);
            return;
        }
        set[from] &= ~low;
        std::fill(set + from + 1, set + to, 0);
        set[to] &= ~high;
    }

    void intersect_all(const std::vector<const uint64_t*>& chosen, uint64_t* reached) const {
        constexpr size_t block = 8;
        size_t w = 0;
        for (; w + block <= n_words; w += block) {
            std::array<uint64_t, block> words;
            std::copy_n(chosen[0] + w, block, words.begin());
            for (size_t s = 1; s < chosen.size(); ++s)
                for (size_t b = 0; b < block; ++b) words[b] &= chosen[s][w + b];
            std::copy_n(words.begin(), block, reached + w);
        }
        for (; w < n_words; ++w) {
            reached[w] = chosen[0][w];
            for (size_t s = 1; s < chosen.size(); ++s) reached[w] &= chosen[s][w];
        }
    }
};

}  // namespace forest
}  // namespace feta

// Slots: a person's shared columns as small integers, computed once per person.
//
// A test of a shared column compares a slot with a rank. A slot is the number of cuts below a
// column's value, or a row of a table for a domain.
#pragma once
#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

constexpr int slot_bits = 20;
constexpr uint64_t max_slots = uint64_t(1) << slot_bits;
// Ranks of one slot; a column with more cuts has several slots. The value above all ranks goes
// right everywhere.
constexpr size_t max_ranks = 65534;
constexpr uint16_t always_right = 65535;

class Slots {
  public:
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

    explicit Slots(const ForestSpec& from) : spec(from) {
        std::map<Key, std::vector<double>> cuts;
        std::map<int32_t, std::vector<int32_t>> starts;
        for (const Node& node : spec.nodes) {
            if (node.test == Test::number) cuts[key(node)].push_back(node.cut);
            if (node.test == Test::member) starts[node.source].push_back(node.extra);
        }
        for (auto& [of, values] : cuts) add_column(of, values);
        for (auto& [domain, values] : starts) add_sets(size_t(domain), values);
        if (count >= max_slots)
            throw std::length_error("too many different tests for the compiled kernel");
    }

    const ForestSpec& spec;
    size_t count = 1;  // slot 0 belongs to nodes that lead to themselves
    std::vector<Column> columns;
    std::vector<Sets> sets;

    // Compute the slots of a person.
    void read(const double* row, std::vector<uint16_t>& slots) const {
        for (const Column& column : columns) {
            const bool missing = is_missing(column, row);
            size_t rank = missing ? 0 : rank_of(column, row);
            for (size_t s = 0; s < column.slots; ++s) {
                uint16_t value = uint16_t(std::min(rank, max_ranks));
                if (missing) value = column.missing_left ? 0 : always_right;
                slots[column.first + s] = value;
                rank -= std::min(rank, max_ranks);
            }
        }
        for (const Sets& of : sets)
            std::copy_n(&of.values[value_index(of, row) * of.starts.size()], of.starts.size(),
                        slots.begin() + ptrdiff_t(of.first));
    }

    static bool is_missing(const Column& column, const double* row) {
        return column.flag >= 0 && row[column.flag] == 1;
    }

    // Return the number of cuts below a person's value.
    static size_t rank_of(const Column& column, const double* row) {
        const auto first = column.cuts.begin();
        return size_t(std::lower_bound(first, column.cuts.end(), row[column.column]) - first);
    }

    size_t n_values(const Sets& of) const { return of.values.size() / of.starts.size(); }

    // Return the index of a person's value in a domain.
    size_t value_index(const Sets& of, const double* row) const {
        const Domain& domain = spec.domains[of.domain];
        if (domain.numbers.empty()) {
            const double* first = row + domain.column;
            return size_t(std::max_element(first, first + domain.width) - first);
        }
        const auto& numbers = domain.numbers;
        if (domain.flag >= 0 && row[domain.flag] == 1) return numbers.size();
        const auto at = std::lower_bound(numbers.begin(), numbers.end(), row[domain.column]);
        return std::min(size_t(at - numbers.begin()), numbers.size() - 1);
    }

    // Return the slot and the rank of a shared test.
    std::pair<size_t, size_t> test(const Node& node) const {
        return node.test == Test::number ? number_test(node) : member_test(node);
    }

  private:
    using Key = std::tuple<int32_t, int32_t, bool>;

    static Key key(const Node& node) {
        return {node.source, node.extra, node.extra >= 0 && node.missing_left};
    }

    void add_column(const Key& of, std::vector<double>& values) {
        Column column{std::get<0>(of), std::get<1>(of), std::get<2>(of), unique(values), count, 1};
        column.slots = (column.cuts.size() + max_ranks - 1) / max_ranks;
        count += column.slots;
        columns.push_back(std::move(column));
    }

    void add_sets(size_t domain, std::vector<int32_t>& values) {
        Sets of{domain, unique(values), count, {}};
        count += of.starts.size();
        for (size_t v = 0; v < n_values(spec.domains[domain]); ++v)
            for (const int32_t start : of.starts)
                of.values.push_back(spec.members[size_t(start) + v] ? 0 : always_right);
        sets.push_back(std::move(of));
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

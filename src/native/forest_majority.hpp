// MajorityCount: the majority of a person's counterparts by a threshold, with few slices computed.
//
// The boxes of a slice change the sums of the base by a bounded amount. So a cell whose base sum is
// far from the threshold is decided in every slice. Where these cells are no majority, cells that
// are decided in some slices count, too. Then slices are computed, those with the most undecided
// counterparts first.
#pragma once
#include "forest_visit.hpp"

namespace feta {
namespace forest {

template <class Int> class MajorityCount {
  public:
    // Count until one side has more than half of all counterparts. Return whether every
    // counterpart is counted otherwise; rounded sums may leave some undecided.
    bool run(Slices<Int>& slices, const Comparison<Int>& comparison, uint64_t total,
             std::vector<uint64_t>& counts) {
        count_common(slices, comparison);
        const bool counted = below + above == total;
        if (counted || 2 * std::max(below, above) > total) {
            write(comparison, counts);
            return counted;
        }
        count_certain(slices, comparison);
        below = above = 0;
        for (const Slice& slice : known) add(slice);
        std::sort(known.begin(), known.end(),
                  [](const Slice& a, const Slice& b) { return a.undecided() > b.undecided(); });
        bool complete = true;
        for (const Slice& slice : known) {
            if (2 * std::max(below, above) > total || slice.undecided() == 0) break;
            below -= slice.below;
            above -= slice.above;
            Slice exact = slice;
            exact.below = exact.above = 0;
            slices.for_each_row_of(slice.number, [&](uint64_t size, const Int* sums) {
                uint64_t row_below, row_above;
                comparison.count(sums, slices.shape.row, slices.inner_sizes.data(), row_below,
                                 row_above);
                exact.below += row_below * size;
                exact.above += row_above * size;
            });
            add(exact);
            complete &= exact.undecided() == 0;
        }
        write(comparison, counts);
        return complete;
    }

  private:
    struct Slice {
        size_t number = 0;
        uint64_t below = 0, above = 0, all = 0;
        uint64_t undecided() const { return all - below - above; }
    };
    // A sum of the base that decides a cell of a slice, and the size of all such cells.
    struct Limit {
        Int sum;
        size_t slice;
        uint64_t size;
    };
    std::vector<Slice> known;
    std::vector<Limit> lower, upper;
    uint64_t below = 0, above = 0;

    void add(const Slice& slice) {
        below += slice.below;
        above += slice.above;
    }

    void write(const Comparison<Int>& comparison, std::vector<uint64_t>& counts) const {
        counts[size_t(comparison.above_number())] = above;
        counts[size_t(1 - comparison.above_number())] = below;
    }

    // Count the cells that are decided in all slices.
    void count_common(const Slices<Int>& slices, const Comparison<Int>& comparison) {
        Int drop = slices.lowest(0), rise = slices.highest(0);
        uint64_t n_values = 0;
        for (size_t s = 0; s < slices.n_slices; ++s) {
            drop = std::min(drop, slices.lowest(s));
            rise = std::max(rise, slices.highest(s));
            n_values += slices.sparse_size(s);
        }
        const Int last = comparison.largest_below() - rise;
        const Int first = comparison.smallest_above() - drop;
        below = above = 0;
        for (size_t c = 0; c < slices.shape.combinations; ++c) {
            const auto [least, most] = slices.base_range(c);
            if (least > last && most < first) continue;
            const Int* sums = slices.base_row(c);
            uint64_t n_below = 0, n_above = 0;
            for (size_t j = 0; j < slices.shape.row; ++j) {
                n_below += sums[j] <= last ? slices.inner_sizes[j] : 0;
                n_above += sums[j] >= first ? slices.inner_sizes[j] : 0;
            }
            below += n_below * slices.outer_size(c) * n_values;
            above += n_above * slices.outer_size(c) * n_values;
        }
    }

    void count_certain(const Slices<Int>& slices, const Comparison<Int>& comparison) {
        known.assign(slices.n_slices, Slice{});
        lower.clear();
        upper.clear();
        for (size_t s = 0; s < slices.n_slices; ++s) {
            lower.push_back({comparison.largest_below() - slices.highest(s), s, 0});
            upper.push_back({comparison.smallest_above() - slices.lowest(s), s, 0});
        }
        const auto order = [](const Limit& a, const Limit& b) { return a.sum < b.sum; };
        std::sort(lower.begin(), lower.end(), order);
        std::sort(upper.begin(), upper.end(), order);
        uint64_t all = 0;
        for (size_t c = 0; c < slices.shape.combinations; ++c) {
            count_row(slices, c);
            all += slices.outer_size(c) * slices.inner_total();
        }
        // A cell below a limit is below all larger ones, and a cell above is above all smaller.
        uint64_t size = 0;
        for (const Limit& limit : lower)
            known[limit.slice].below = (size += limit.size) * slices.sparse_size(limit.slice);
        size = 0;
        for (auto limit = upper.rbegin(); limit != upper.rend(); ++limit)
            known[limit->slice].above = (size += limit->size) * slices.sparse_size(limit->slice);
        for (size_t s = 0; s < known.size(); ++s) {
            known[s].number = s;
            known[s].all = all * slices.sparse_size(s);
        }
    }

    // Add each cell to the smallest limit that it is below, and to the largest that it is above.
    void count_row(const Slices<Int>& slices, size_t c) {
        const uint64_t size = slices.outer_size(c);
        const auto [least, most] = slices.base_range(c);
        size_t first_lower = find_lower(least), first_upper = find_upper(least);
        const size_t last_lower = find_lower(most), last_upper = find_upper(most);
        if (first_lower == last_lower && first_upper == last_upper) {
            add_size(first_lower, first_upper, size * slices.inner_total());
            return;
        }
        const Int* sums = slices.base_row(c);
        uint64_t cells = 0;  // of neighbors that are between the same limits
        for (size_t j = 0; j < slices.shape.row; ++j) {
            if (j > 0 && !is_between(sums[j], first_lower, first_upper)) {
                add_size(first_lower, first_upper, size * cells);
                cells = 0;
            }
            if (cells == 0) {
                first_lower = find_lower(sums[j]);
                first_upper = find_upper(sums[j]);
            }
            cells += slices.inner_sizes[j];
        }
        add_size(first_lower, first_upper, size * cells);
    }

    // Return whether a sum has these results of `find_lower` and `find_upper`.
    bool is_between(Int sum, size_t in_lower, size_t in_upper) const {
        return (in_lower == lower.size() || sum <= lower[in_lower].sum) &&
               (in_lower == 0 || sum > lower[in_lower - 1].sum) &&
               (in_upper == upper.size() || sum < upper[in_upper].sum) &&
               (in_upper == 0 || sum >= upper[in_upper - 1].sum);
    }

    void add_size(size_t to_lower, size_t to_upper, uint64_t size) {
        if (to_lower < lower.size()) lower[to_lower].size += size;
        if (to_upper > 0) upper[to_upper - 1].size += size;
    }

    // Return the index of the first limit that is at least the sum.
    size_t find_lower(Int sum) const {
        return search(lower, [&](Int limit) { return limit < sum; });
    }

    // Return the number of limits that are at most the sum.
    size_t find_upper(Int sum) const {
        return search(upper, [&](Int limit) { return limit <= sum; });
    }

    template <class Before> static size_t search(const std::vector<Limit>& in, Before before) {
        const Limit* first = in.data();
        size_t count = in.size();
        while (count > 0) {
            const size_t half = (count + 1) / 2;
            first += before(first[half - 1].sum) ? half : 0;
            count -= half;
        }
        return size_t(first - in.data());
    }
};

}  // namespace forest
}  // namespace feta

// SharedColumns: validates, deduplicates and evaluates the shared columns of raw rows.
//
// A row is read completely, four columns at a time. Sensitive columns pass every check and do not
// contribute to hashes or terms.
#pragma once
#include <algorithm>
#include <cmath>

#include "arithmetic.hpp"
#include "spec.hpp"
#include "vector.hpp"

namespace feta {
namespace FETA_ISA {

class SharedColumns {
  public:
    SharedColumns(const SharedSpec& spec, int neurons)
        : row_width(size_t(spec.width)), vectors((row_width + lanes - 1) / lanes),
          width(size_t(padded<double>(neurons))), low(vectors * lanes, 0.0), high(low),
          not_shared(low.size(), -1), may_be_fraction(low.size(), -1), hash_factors(low.size(), 0),
          shared_bits((row_width + 63) / 64, 0), slopes(row_width * width, 0.0),
          floors(width, 0.0) {
        uint64_t state = 1;
        for (size_t c = 0; c < spec.columns.size(); ++c) {
            const size_t column = size_t(spec.columns[c]);
            not_shared[column] = 0;
            if (spec.integer[c]) may_be_fraction[column] = 0;
            // `check` recognizes integers only up to this size and rejects larger ones.
            low[column] = spec.integer[c] ? std::max(spec.low[c], -0x1p50) : spec.low[c];
            high[column] = spec.integer[c] ? std::min(spec.high[c], 0x1p50) : spec.high[c];
            state = state * 6364136223846793005u + 1442695040888963407u;
            hash_factors[column] = int64_t(state >> 32 | 1);
            const uint64_t bit = uint64_t(1) << column % 64;
            shared_bits[column / 64] |= bit;
            if (spec.group[c] >= 0) add_to_group(spec.group[c], column / 64, bit);
            for (int n = 0; n < neurons; ++n) {
                const double slope = spec.slopes[c * size_t(neurons) + size_t(n)];
                slopes[column * width + size_t(n)] = slope;
                // Terms that underflow still need a positive magnitude.
                floors[size_t(n)] += underflow_floor * (std::abs(slope) + underflow_floor);
            }
        }
        if (!group_bits.empty()) group_bits.back().last = true;
    }

    // Return whether a row lies in the space, and hash its shared columns. The check may reject a
    // valid row but never accepts an invalid one. One-hot columns are integers from 0 to 1.
    bool check(const double* row, uint64_t& hash) const {
        const V magic = broadcast(0x1.8p52);  // adding it rounds to an integer
        I valid = ~I{};
        U sum{};
        for (size_t v = 0; v < vectors; ++v) {
            const size_t at = v * lanes;
            const V x = load_columns(row, v);
            const I inside = (x >= load(&low[at])) & (x <= load(&high[at]));  // false for NaN
            valid &= (inside & ((x + magic - magic == x) | load_int64(&may_be_fraction[at]))) |
                     load_int64(&not_shared[at]);
            const U bits = (U)(x + V{});  // turns −0.0 into 0.0
            sum += ((bits ^ bits >> 32) & 0xffffffff) * (U)load_int64(&hash_factors[at]);
        }
        uint64_t mixed = sum[0] + 3 * sum[1] + 5 * sum[2] + 7 * sum[3];
        mixed = (mixed ^ mixed >> 32) * 0xff51afd7ed558ccdu;
        hash = mixed ^ mixed >> 32;
        if (!all<double>(valid)) return false;
        size_t word = SIZE_MAX;
        uint64_t set = 0;
        int ones = 0;
        for (const GroupBits& member : group_bits) {
            if (member.word != word) set = nonzero(row, word = member.word);
            ones += __builtin_popcountll(set & member.bits);
            if (!member.last) continue;
            if (ones != 1) return false;
            ones = 0;
        }
        return true;
    }

    // Sum the terms of the shared columns per neuron, and their absolute values.
    void terms(const double* row, double* values, double* magnitudes) const {
        std::fill(values, values + width, 0.0);
        std::copy(floors.begin(), floors.end(), magnitudes);
        double all = 0;
        for (size_t w = 0; w < shared_bits.size(); ++w) {
            const uint64_t set = nonzero(row, w) & shared_bits[w];
            for (uint64_t rest = set; rest; rest &= rest - 1)
                all += std::abs(row[64 * w + size_t(__builtin_ctzll(rest))]);
            size_t n = 0;
            for (; n + 4 * lanes <= width; n += 4 * lanes)
                add<4>(row, w, set, n, values, magnitudes);
            for (; n < width; n += lanes) add<1>(row, w, set, n, values, magnitudes);
        }
        for (size_t n = 0; n < width; ++n) magnitudes[n] += underflow_floor * all;
    }

    // Find for each row the first row with the same shared columns. A call handles the rows of one
    // part; equal rows have equal hashes and are therefore in the same part.
    void find_first_equal(const double* rows, const std::vector<uint64_t>& hashes, size_t part,
                          size_t parts, std::vector<uint32_t>& first) const {
        constexpr uint32_t none = UINT32_MAX;
        const size_t n_rows = hashes.size();
        const auto in_part = [&](uint64_t hash) { return (hash >> 32) * parts >> 32 == part; };
        const size_t min_slots = 2 * size_t(std::count_if(hashes.begin(), hashes.end(), in_part));
        size_t slots = 4;
        while (slots < min_slots) slots *= 2;
        std::vector<uint32_t> seen(slots, none);
        for (size_t r = 0; r < n_rows; ++r) {
            if (!in_part(hashes[r])) continue;
            size_t slot = hashes[r] & (slots - 1);
            while (seen[slot] != none &&
                   !(hashes[seen[slot]] == hashes[r] &&
                     equal(rows + r * row_width, rows + seen[slot] * row_width)))
                slot = (slot + 1) & (slots - 1);
            if (seen[slot] == none) seen[slot] = uint32_t(r);
            first[r] = seen[slot];
        }
    }

    size_t padded_neurons() const { return width; }

  private:
    static constexpr size_t lanes = size_t(lanes_of<double>);
    using V = Vec<double>;
    using I = Mask<double>;
    typedef uint64_t U __attribute__((vector_size(32)));  // its sums and products wrap
    struct GroupBits {  // columns of a one-hot group within one word of 64 columns
        int32_t group;
        size_t word;
        uint64_t bits;
        bool last;  // of its group
    };
    size_t row_width, vectors, width;
    Array<double> low, high;                     // by column
    Array<int64_t> not_shared, may_be_fraction;  // masks by column: all bits set if true
    Array<int64_t> hash_factors;                 // 32 bits each; 0 for sensitive columns
    std::vector<GroupBits> group_bits;
    std::vector<uint64_t> shared_bits;  // one bit per column
    Array<double> slopes;               // (columns, width)
    Array<double> floors;               // (width): initial magnitudes

    void add_to_group(int32_t group, size_t word, uint64_t bit) {
        if (!group_bits.empty() && group_bits.back().group == group &&
            group_bits.back().word == word) {
            group_bits.back().bits |= bit;
            return;
        }
        if (!group_bits.empty()) group_bits.back().last = group_bits.back().group != group;
        group_bits.push_back({group, word, bit, false});
    }

    template <int K> void add(const double* row, size_t w, uint64_t set, size_t first,
                              double* values, double* magnitudes) const {
        V value[K], magnitude[K];
        for (int k = 0; k < K; ++k)
            value[k] = load(values + first + k * lanes),
            magnitude[k] = load(magnitudes + first + k * lanes);
        for (; set; set &= set - 1) {
            const size_t column = 64 * w + size_t(__builtin_ctzll(set));
            const double x = row[column];
            const double* slope = &slopes[column * width + first];
            for (int k = 0; k < K; ++k) {
                const V s = load(slope + k * lanes);
                value[k] += x * s;
                magnitude[k] += std::abs(x) * absolute<double>(s);
            }
        }
        for (int k = 0; k < K; ++k)
            store(values + first + k * lanes, value[k]),
                store(magnitudes + first + k * lanes, magnitude[k]);
    }

    bool equal(const double* first, const double* second) const {
        for (size_t v = 0; v < vectors; ++v)
            if (!all<double>((load_columns(first, v) == load_columns(second, v)) |
                             load_int64(&not_shared[v * lanes])))
                return false;
        return true;
    }

    V load_columns(const double* row, size_t v) const {
        if ((v + 1) * lanes <= row_width) return load(row + v * lanes);
        double rest[lanes] = {};
        std::copy(row + v * lanes, row + row_width, rest);
        return load(rest);
    }
    static I load_int64(const int64_t* from) {
        I i;
        std::memcpy(&i, from, sizeof i);
        return i;
    }

    // Return a bit mask of the nonzero columns among the 64 from 64 · w on.
    uint64_t nonzero(const double* row, size_t w) const {
        uint64_t set = 0;
        for (size_t v = w * (64 / lanes), end = std::min(vectors, v + 64 / lanes), at = 0; v < end;
             ++v, at += lanes)
            set |= uint64_t(lane_bits(load_columns(row, v) != V{})) << at;
        return set;
    }
};

}  // namespace FETA_ISA
}  // namespace feta

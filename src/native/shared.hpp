// Shared: the columns that counterparts share, read from raw rows: checked, told apart, added up.
//
// A row is read whole, four columns at a time; what is sensitive passes every check and counts for nothing.
#pragma once
#include <algorithm>
#include <cmath>

#include "arithmetic.hpp"
#include "spec.hpp"
#include "vector.hpp"

namespace feta {
namespace FETA_ISA {

class Shared {
  public:
    Shared(const SharedSpec& spec, int neurons)
        : row_width(size_t(spec.width)), vectors((row_width + lanes - 1) / lanes),
          width(size_t(padded<double>(neurons))), low(vectors * lanes, 0.0), high(low),
          free(low.size(), -1), fraction(low.size(), -1), factors(low.size(), 0),
          read((row_width + 63) / 64, 0), slopes(row_width * width, 0.0), floors(width, 0.0) {
        uint64_t state = 1;
        for (size_t c = 0; c < spec.columns.size(); ++c) {
            const size_t column = size_t(spec.columns[c]);
            free[column] = 0;
            if (spec.whole[c]) fraction[column] = 0;
            // Larger whole numbers are refused: the check below would not hold for them.
            low[column] = spec.whole[c] ? std::max(spec.low[c], -0x1p50) : spec.low[c];
            high[column] = spec.whole[c] ? std::min(spec.high[c], 0x1p50) : spec.high[c];
            state = state * 6364136223846793005u + 1442695040888963407u;
            factors[column] = int64_t(state >> 32 | 1);
            const uint64_t bit = uint64_t(1) << column % 64;
            read[column / 64] |= bit;
            if (spec.group[c] >= 0) note_member(spec.group[c], column / 64, bit);
            for (int n = 0; n < neurons; ++n) {
                const double slope = spec.slopes[c * size_t(neurons) + size_t(n)];
                slopes[column * width + size_t(n)] = slope;
                // So that terms lost to underflow still have a size.
                floors[size_t(n)] += floor_size * (std::abs(slope) + floor_size);
            }
        }
        if (!members.empty()) members.back().last = true;
    }

    // Whether a row lies in the space, and a number by which to tell it from others. It may say no to
    // a good row, never yes to a bad one. A category's columns are whole numbers from 0 to 1.
    bool check(const double* row, uint64_t& hash) const {
        const V magic = spread(0x1.8p52);  // adding it rounds to a whole number
        I good = ~I{}, sum{};
        for (size_t v = 0; v < vectors; ++v) {
            const size_t at = v * lanes;
            const V x = part(row, v);
            const I inside = (x >= load(&low[at])) & (x <= load(&high[at]));  // NaN is neither
            good &= (inside & ((x + magic - magic == x) | integers(&fraction[at]))) |
                    integers(&free[at]);
            const I bits = (I)(x + V{});  // −0.0 equals 0.0
            sum += ((bits ^ bits >> 32) & 0xffffffff) * integers(&factors[at]);
        }
        uint64_t mixed =
            uint64_t(sum[0]) + 3 * uint64_t(sum[1]) + 5 * uint64_t(sum[2]) + 7 * uint64_t(sum[3]);
        mixed = (mixed ^ mixed >> 32) * 0xff51afd7ed558ccdu;
        hash = mixed ^ mixed >> 32;
        if (!all<double>(good)) return false;
        size_t word = SIZE_MAX;
        uint64_t set = 0;
        int ones = 0;
        for (const Member& one : members) {
            if (one.word != word) set = nonzero(row, word = one.word);
            ones += __builtin_popcountll(set & one.bits);
            if (!one.last) continue;
            if (ones != 1) return false;
            ones = 0;
        }
        return true;
    }

    // Add up what the columns contribute to each neuron, and the terms' sizes.
    void terms(const double* row, double* values, double* sizes) const {
        std::fill(values, values + width, 0.0);
        std::copy(floors.begin(), floors.end(), sizes);
        double all = 0;
        for (size_t w = 0; w < read.size(); ++w) {
            const uint64_t set = nonzero(row, w) & read[w];
            for (uint64_t rest = set; rest; rest &= rest - 1)
                all += std::abs(row[64 * w + size_t(__builtin_ctzll(rest))]);
            size_t n = 0;
            for (; n + 4 * lanes <= width; n += 4 * lanes) add<4>(row, w, set, n, values, sizes);
            for (; n < width; n += lanes) add<1>(row, w, set, n, values, sizes);
        }
        for (size_t n = 0; n < width; ++n) sizes[n] += floor_size * all;
    }

    // For each row the first that agrees with it on every shared column; one of several parts of the rows,
    // in which all are that agree.
    void firsts(const double* rows, const std::vector<uint64_t>& hashes, size_t part, size_t parts,
                std::vector<uint32_t>& first) const {
        constexpr uint32_t none = UINT32_MAX;
        const size_t many = hashes.size();
        const auto mine = [&](uint64_t hash) { return (hash >> 32) * parts >> 32 == part; };
        const size_t most = 2 * size_t(std::count_if(hashes.begin(), hashes.end(), mine));
        size_t slots = 4;
        while (slots < most) slots *= 2;
        std::vector<uint32_t> seen(slots, none);
        for (size_t r = 0; r < many; ++r) {
            if (!mine(hashes[r])) continue;
            size_t slot = hashes[r] & (slots - 1);
            while (seen[slot] != none &&
                   !(hashes[seen[slot]] == hashes[r] &&
                     same(rows + r * row_width, rows + seen[slot] * row_width)))
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
    struct Member {  // some of a category's columns: bits of a word of columns
        int32_t group;
        size_t word;
        uint64_t bits;
        bool last;  // of its category
    };
    size_t row_width, vectors, width;
    Array<double> low, high;  // by column
    Array<int64_t> free,
        fraction;            // all bits where a column is not shared; where it need not be whole
    Array<int64_t> factors;  // for the hash, of 32 bits
    std::vector<Member> members;
    std::vector<uint64_t> read;  // bits of the shared columns
    Array<double> slopes;        // (columns, width)
    Array<double> floors;

    void note_member(int32_t group, size_t word, uint64_t bit) {
        if (!members.empty() && members.back().group == group && members.back().word == word) {
            members.back().bits |= bit;
            return;
        }
        if (!members.empty()) members.back().last = members.back().group != group;
        members.push_back({group, word, bit, false});
    }

    template <int K> void add(const double* row, size_t w, uint64_t set, size_t first,
                              double* values, double* sizes) const {
        V value[K], size[K];
        for (int k = 0; k < K; ++k)
            value[k] = load(values + first + k * lanes), size[k] = load(sizes + first + k * lanes);
        for (; set; set &= set - 1) {
            const size_t column = 64 * w + size_t(__builtin_ctzll(set));
            const double x = row[column];
            const double* slope = &slopes[column * width + first];
            for (int k = 0; k < K; ++k) {
                const V s = load(slope + k * lanes);
                value[k] += x * s;
                size[k] += std::abs(x) * absolute<double>(s);
            }
        }
        for (int k = 0; k < K; ++k)
            store(values + first + k * lanes, value[k]), store(sizes + first + k * lanes, size[k]);
    }

    bool same(const double* one, const double* other) const {
        for (size_t v = 0; v < vectors; ++v)
            if (!all<double>((part(one, v) == part(other, v)) | integers(&free[v * lanes])))
                return false;
        return true;
    }

    V part(const double* row, size_t v) const {
        if ((v + 1) * lanes <= row_width) return load(row + v * lanes);
        double rest[lanes] = {};
        std::copy(row + v * lanes, row + row_width, rest);
        return load(rest);
    }
    static I integers(const int64_t* from) {
        I i;
        std::memcpy(&i, from, sizeof i);
        return i;
    }

    // Which of the columns from 64 · w on are not zero.
    uint64_t nonzero(const double* row, size_t w) const {
        uint64_t set = 0;
        for (size_t v = w * (64 / lanes), end = std::min(vectors, v + 64 / lanes), at = 0; v < end;
             ++v, at += lanes)
            set |= uint64_t(lane_bits(part(row, v) != V{})) << at;
        return set;
    }
};

}  // namespace FETA_ISA
}  // namespace feta

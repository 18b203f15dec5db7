// Shared: the columns that counterparts share, read from raw rows: checked, told apart, added up.
#pragma once
#include <cmath>

#include "arithmetic.hpp"
#include "spec.hpp"
#include "vector.hpp"

namespace feta {
namespace FETA_ISA {

class Shared {
  public:
    Shared(const SharedSpec& spec, int neurons)
        : spec(spec), neurons(neurons), width(padded<double>(neurons)), slopes(spec.columns.size() * size_t(width), 0.0),
          floors(size_t(width), 0.0) {
        for (size_t c = 0; c < spec.columns.size(); ++c)
            for (int n = 0; n < neurons; ++n) {
                const double slope = spec.slopes[c * size_t(neurons) + size_t(n)];
                slopes[c * size_t(width) + size_t(n)] = slope;
                // So that terms lost to underflow still have a size.
                floors[size_t(n)] += floor_size * (std::abs(slope) + floor_size);
            }
    }

    // Whether all rows lie in the space; it may say no to a good row, never yes to a bad one.
    bool valid(const double* rows, size_t many) const {
        std::vector<double> in_group(size_t(spec.groups));
        for (size_t r = 0; r < many; ++r)
            if (!valid_row(rows + r * size_t(spec.width), in_group)) return false;
        return true;
    }

    // Add up what the columns contribute to each neuron, and the terms' sizes.
    void terms(const double* row, double* values, double* sizes) const {
        std::fill(values, values + width, 0.0);
        std::copy(floors.begin(), floors.end(), sizes);
        double all = 0;
        for (size_t c = 0; c < spec.columns.size(); ++c) {
            const double x = row[spec.columns[c]];
            if (x == 0) continue;  // most columns of a category
            const double* slope = &slopes[c * size_t(width)];
            const double size = std::abs(x);
            all += size;
            for (int n = 0; n < width; n += lanes_of<double>) {
                const Vec<double> s = load(slope + n);
                store(values + n, load(values + n) + x * s);
                store(sizes + n, load(sizes + n) + size * absolute<double>(s));
            }
        }
        for (int n = 0; n < width; ++n) sizes[n] += floor_size * all;
    }

    // For each row the first that agrees with it on every shared column.
    std::vector<uint32_t> firsts(const double* rows, size_t many) const {
        constexpr uint32_t none = UINT32_MAX;
        size_t slots = 4;
        while (slots < 2 * many) slots *= 2;
        std::vector<uint32_t> seen(slots, none), first(many);
        for (size_t r = 0; r < many; ++r) {
            const double* row = rows + r * size_t(spec.width);
            size_t slot = hash(row) & (slots - 1);
            while (seen[slot] != none && !same(row, rows + size_t(seen[slot]) * size_t(spec.width))) slot = (slot + 1) & (slots - 1);
            if (seen[slot] == none) seen[slot] = uint32_t(r);
            first[r] = seen[slot];
        }
        return first;
    }

    int padded_neurons() const { return width; }

  private:
    const SharedSpec& spec;
    int neurons, width;
    Array<double> slopes;  // (columns, width)
    Array<double> floors;

    bool valid_row(const double* row, std::vector<double>& in_group) const {
        std::fill(in_group.begin(), in_group.end(), 0.0);
        bool good = true;
        for (size_t c = 0; c < spec.columns.size(); ++c) {
            const double x = row[spec.columns[c]];
            good &= x >= spec.low[c] && x <= spec.high[c];  // NaN is neither
            good &= !spec.whole[c] || x == std::floor(x);
            if (spec.group[c] >= 0) in_group[size_t(spec.group[c])] += x;
        }
        for (const double sum : in_group) good &= sum == 1.0;
        return good;
    }

    uint64_t hash(const double* row) const {
        uint64_t sum = 0x9e3779b97f4a7c15u;
        for (const int32_t column : spec.columns) {
            const double x = row[column] + 0.0;  // −0.0 equals 0.0
            uint64_t bits;
            std::memcpy(&bits, &x, sizeof bits);
            sum = (sum ^ bits) * 0xff51afd7ed558ccdu;
            sum ^= sum >> 32;
        }
        return sum;
    }

    bool same(const double* one, const double* other) const {
        for (const int32_t column : spec.columns)
            if (one[column] != other[column]) return false;
        return true;
    }
};

}  // namespace FETA_ISA
}  // namespace feta

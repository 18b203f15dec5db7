// Exact scores of piecewise-linear networks: integers of many words times one power of two.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace feta {

// Networks that need longer integers are evaluated in Python: 4096 bits for one number.
inline constexpr int max_words = 64;
inline constexpr int word_bits = 64;

// A float64 as mantissa · 2^exponent; the mantissa is odd, or 0.
struct Binary {
    int64_t mantissa = 0;
    int exponent = 0;
};

inline Binary binary_of(double value) {
    if (value == 0.0) return {};
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    const auto mantissa = int64_t(std::ldexp(fraction, 53));  // exact: it has 53 bits
    const int zeros = std::countr_zero(uint64_t(mantissa));
    return {mantissa >> zeros, exponent - 53 + zeros};
}

// Numbers are multiples of 2^bottom, with absolute values below 2^top.
struct Range {
    int bottom = 0;
    int top = 0;
    bool empty = true;  // all numbers are 0

    void add(const Binary& number) {
        if (number.mantissa == 0) return;
        const int size = int(std::bit_width(uint64_t(std::abs(number.mantissa))));
        add(Range{number.exponent, number.exponent + size, false});
    }
    void add(const Range& other) {
        if (other.empty) return;
        bottom = empty ? other.bottom : std::min(bottom, other.bottom);
        top = empty ? other.top : std::max(top, other.top);
        empty = false;
    }
    // The range of products of numbers of both ranges.
    Range times(const Range& other) const {
        if (empty || other.empty) return {};
        return {bottom + other.bottom, top + other.top, false};
    }
    // The range of sums of this many numbers.
    Range summed(size_t terms) const { return {bottom, top + int(std::bit_width(terms)), empty}; }
    int words() const { return empty ? 1 : (top - bottom + 1) / word_bits + 1; }
};

// total += factor · value · 2^shift, modulo 2^(64 · total_words). Integers are in two's complement.
// A total that fits into its words is exact, whatever overflowed before.
inline void add_product(uint64_t* total, int total_words, const uint64_t* value, int value_words,
                        int64_t factor, int shift) {
    const bool negative = factor < 0;
    const uint64_t size = negative ? 0 - uint64_t(factor) : uint64_t(factor);
    const uint64_t flip = negative ? ~uint64_t(0) : 0;  // −p is ~p + 1
    const uint64_t sign = value[value_words - 1] >> 63 ? ~uint64_t(0) : 0;
    const int skipped = shift / word_bits, bits = shift % word_bits;
    uint64_t high = 0, before = 0, carry = negative ? 1 : 0;
    for (int word = skipped; word < total_words; ++word) {
        const int index = word - skipped;
        const unsigned __int128 product =
            static_cast<unsigned __int128>(index < value_words ? value[index] : sign) * size + high;
        const auto low = uint64_t(product);
        high = uint64_t(product >> word_bits);
        const uint64_t shifted = bits ? (low << bits) | (before >> (word_bits - bits)) : low;
        before = low;
        const unsigned __int128 sum =
            static_cast<unsigned __int128>(total[word]) + (shifted ^ flip) + carry;
        total[word] = uint64_t(sum);
        carry = uint64_t(sum >> word_bits);
    }
}

inline void add_number(uint64_t* total, int words, const Binary& number, int bottom) {
    if (number.mantissa == 0) return;
    const auto mantissa = uint64_t(number.mantissa);
    add_product(total, words, &mantissa, 1, 1, number.exponent - bottom);
}

// Whether an integer is at least another one, both in two's complement.
inline bool at_least(const uint64_t* left, const uint64_t* right, int words) {
    const auto left_top = int64_t(left[words - 1]), right_top = int64_t(right[words - 1]);
    if (left_top != right_top) return left_top > right_top;
    for (int word = words - 2; word >= 0; --word)
        if (left[word] != right[word]) return left[word] > right[word];
    return true;
}

// A matrix of float64 numbers.
struct BinaryMatrix {
    size_t rows = 0, columns = 0;
    std::vector<Binary> numbers;
    Range range;

    BinaryMatrix() = default;
    BinaryMatrix(const double* values, size_t n_rows, size_t n_columns)
        : rows(n_rows), columns(n_columns), numbers(n_rows * n_columns) {
        for (size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = binary_of(values[i]);
            range.add(numbers[i]);
        }
    }
    const Binary* row(size_t index) const { return numbers.data() + index * columns; }
};

// Integers of `words` words each, all times 2^range.bottom.
struct WideRow {
    Range range;
    int words = 1;
    std::vector<uint64_t> integers;

    void reset(const Range& values, size_t count) {
        range = values;
        words = values.words();
        integers.assign(count * size_t(words), 0);
    }
    uint64_t* at(size_t index) { return integers.data() + index * size_t(words); }
    const uint64_t* at(size_t index) const { return integers.data() + index * size_t(words); }
};

// An activation, and the affine layer after it; one column per neuron.
struct ExactStep {
    BinaryMatrix breaks, slopes, intercepts;  // (pieces − 1, neurons), (pieces, neurons)
    BinaryMatrix weight, bias;                // (outputs, neurons), (1, outputs)
};

class ExactChain {
  public:
    BinaryMatrix slopes, bias;         // of the first layer: (columns, neurons), (1, neurons)
    std::vector<BinaryMatrix> tables;  // of some columns: (values, neurons)
    std::vector<ExactStep> steps;

    size_t outputs() const { return steps.empty() ? bias.columns : steps.back().bias.columns; }

    // The scores of people; `indices` has the row of each table, per person. Without a result, the
    // integers would be too long.
    std::optional<WideRow> scores(const double* people, const int64_t* indices,
                                  size_t count) const {
        const BinaryMatrix inputs(people, count, slopes.rows);
        WideRow all, values, next;
        for (size_t person = 0; person < count; ++person) {
            if (!first_layer(inputs, indices, person, values)) return std::nullopt;
            for (const ExactStep& step : steps) {
                if (!activate(step, values, next) || !affine(step, next, values))
                    return std::nullopt;
            }
            if (person == 0) all.reset(values.range, count * outputs());
            std::copy(values.integers.begin(), values.integers.end(), all.at(person * outputs()));
        }
        return all;
    }

  private:
    static Range breaks_after(const std::vector<ExactStep>& steps, size_t layer) {
        return layer < steps.size() ? steps[layer].breaks.range : Range{};
    }

    // Ranges depend on the batch, not on the person, so that all rows have the same exponent.
    bool first_layer(const BinaryMatrix& inputs, const int64_t* indices, size_t person,
                     WideRow& values) const {
        Range range = inputs.range.times(slopes.range);
        for (const BinaryMatrix& table : tables) range.add(table.range);
        range.add(bias.range);
        range = range.summed(slopes.rows + tables.size() + 1);
        range.add(breaks_after(steps, 0));
        if (range.words() > max_words) return false;
        const size_t neurons = bias.columns;
        values.reset(range, neurons);
        for (size_t column = 0; column < slopes.rows; ++column) {
            const Binary input = inputs.row(person)[column];
            if (input.mantissa == 0) continue;
            const auto mantissa = uint64_t(input.mantissa);
            for (size_t neuron = 0; neuron < neurons; ++neuron) {
                const Binary slope = slopes.row(column)[neuron];
                if (slope.mantissa == 0) continue;
                add_product(values.at(neuron), values.words, &mantissa, 1, slope.mantissa,
                            input.exponent + slope.exponent - range.bottom);
            }
        }
        for (size_t neuron = 0; neuron < neurons; ++neuron) {
            for (size_t table = 0; table < tables.size(); ++table) {
                const auto row = size_t(indices[person * tables.size() + table]);
                add_number(values.at(neuron), values.words, tables[table].row(row)[neuron],
                           range.bottom);
            }
            add_number(values.at(neuron), values.words, bias.row(0)[neuron], range.bottom);
        }
        return true;
    }

    // A break belongs to the piece above it.
    static bool activate(const ExactStep& step, const WideRow& values, WideRow& activated) {
        Range range = values.range.times(step.slopes.range);
        range.add(step.intercepts.range);
        range = range.summed(2);
        if (range.words() > max_words) return false;
        const size_t neurons = step.slopes.columns;
        activated.reset(range, neurons);
        std::vector<uint64_t> edge(size_t(values.words));
        for (size_t neuron = 0; neuron < neurons; ++neuron) {
            size_t piece = 0;
            for (; piece < step.breaks.rows; ++piece) {
                std::fill(edge.begin(), edge.end(), 0);
                add_number(edge.data(), values.words, step.breaks.row(piece)[neuron],
                           values.range.bottom);
                if (!at_least(values.at(neuron), edge.data(), values.words)) break;
            }
            const Binary slope = step.slopes.row(piece)[neuron];
            if (slope.mantissa != 0 && !values.range.empty)
                add_product(activated.at(neuron), activated.words, values.at(neuron), values.words,
                            slope.mantissa, values.range.bottom + slope.exponent - range.bottom);
            add_number(activated.at(neuron), activated.words, step.intercepts.row(piece)[neuron],
                       range.bottom);
        }
        return true;
    }

    bool affine(const ExactStep& step, const WideRow& inputs, WideRow& values) const {
        const auto layer = size_t(&step - steps.data());
        Range range = inputs.range.times(step.weight.range);
        range.add(step.bias.range);
        range = range.summed(step.weight.columns + 1);
        range.add(breaks_after(steps, layer + 1));
        if (range.words() > max_words) return false;
        values.reset(range, step.weight.rows);
        for (size_t output = 0; output < step.weight.rows; ++output) {
            // Without a range, all inputs are 0, and shifts have no meaning.
            for (size_t neuron = 0; neuron < step.weight.columns && !inputs.range.empty; ++neuron) {
                const Binary weight = step.weight.row(output)[neuron];
                if (weight.mantissa == 0) continue;
                add_product(values.at(output), values.words, inputs.at(neuron), inputs.words,
                            weight.mantissa, inputs.range.bottom + weight.exponent - range.bottom);
            }
            add_number(values.at(output), values.words, step.bias.row(0)[output], range.bottom);
        }
        return true;
    }
};

}  // namespace feta

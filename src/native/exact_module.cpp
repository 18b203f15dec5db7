// The Python binding of exact scores.
#include "exact_module.hpp"

#include <nanobind/ndarray.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "exact.hpp"

namespace nb = nanobind;

namespace feta {
namespace {

using Doubles = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

BinaryMatrix matrix(const Doubles& values, size_t columns, const char* name) {
    if (values.shape(1) != columns)
        throw std::invalid_argument(std::string("invalid shape of ") + name + ": got " +
                                    std::to_string(values.shape(1)) + " columns; expected " +
                                    std::to_string(columns));
    for (size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values.data()[i]))
            throw std::invalid_argument(std::string("invalid ") + name +
                                        ": got NaN or infinity; expected finite numbers");
    return {values.data(), values.shape(0), values.shape(1)};
}

void add_table(ExactChain& self, const Doubles& rows) {
    self.tables.push_back(matrix(rows, self.bias.columns, "a table"));
}

void add_layer(ExactChain& self, const Doubles& breaks, const Doubles& slopes,
               const Doubles& intercepts, const Doubles& weight, const Doubles& bias) {
    const size_t neurons = self.outputs();
    if (slopes.shape(0) != breaks.shape(0) + 1 || intercepts.shape(0) != slopes.shape(0) ||
        bias.shape(0) != 1)
        throw std::invalid_argument("invalid layer: expected a piece more than breaks, and a bias");
    self.steps.push_back({matrix(breaks, neurons, "breaks"), matrix(slopes, neurons, "slopes"),
                          matrix(intercepts, neurons, "intercepts"),
                          matrix(weight, neurons, "a weight"),
                          matrix(bias, weight.shape(0), "a bias")});
}

// Return the integers as bytes, little-endian in two's complement, the number of bytes of each, and
// their exponent. Return None if they are too long, or if a row has NaN or infinity.
nb::object scores(const ExactChain& self, const Doubles& people, const Indices& indices) {
    if (people.shape(1) != self.slopes.rows || indices.shape(0) != people.shape(0) ||
        indices.shape(1) != self.tables.size())
        throw std::invalid_argument(
            "invalid people: expected one row per person and the columns "
            "and tables of the network");
    for (size_t i = 0; i < people.size(); ++i)
        if (!std::isfinite(people.data()[i])) return nb::none();
    for (size_t i = 0; i < indices.size(); ++i) {
        const auto rows = int64_t(self.tables[i % self.tables.size()].rows);
        if (indices.data()[i] < 0 || indices.data()[i] >= rows)
            throw std::invalid_argument("invalid row of a table: expected one that it has");
    }
    std::optional<WideRow> result;
    {
        nb::gil_scoped_release released;
        result = self.scores(people.data(), indices.data(), people.shape(0));
    }
    if (!result) return nb::none();
    std::vector<uint8_t> bytes;
    bytes.reserve(result->integers.size() * sizeof(uint64_t));
    for (const uint64_t word : result->integers)
        for (int byte = 0; byte < int(sizeof(uint64_t)); ++byte)
            bytes.push_back(uint8_t(word >> (8 * byte)));
    return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()),
                          result->words * int(sizeof(uint64_t)), result->range.bottom);
}

}  // namespace

void bind_exact(nb::module_& module) {
    nb::class_<ExactChain>(module, "ExactChain")
        .def("__init__",
             [](ExactChain* self, const Doubles& slopes, const Doubles& bias) {
                 ExactChain chain;
                 chain.slopes = matrix(slopes, bias.shape(1), "slopes");
                 chain.bias = matrix(bias, bias.shape(1), "a bias");
                 new (self) ExactChain(std::move(chain));
             })
        .def("add_table", &add_table)
        .def("add_layer", &add_layer)
        .def("scores", &scores);
}

}  // namespace feta

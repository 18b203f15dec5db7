// The Python binding of scores with error bounds.
#include "bounded_module.hpp"

#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>

#include "bounded.hpp"

namespace nb = nanobind;

namespace feta {
namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool valid, const char* what) {
    if (!valid) throw std::invalid_argument(what);
}

Doubles2 copied(const Matrix& values, size_t columns) {
    require(values.shape(1) == columns, "invalid matrix: expected one column per neuron");
    return {values.shape(0), columns, {values.data(), values.data() + values.size()}};
}

std::vector<double> copied(const Vector& values) {
    return {values.data(), values.data() + values.size()};
}

// `numbers` are gamma, tiny, upward and the limit.
BoundTerms terms_of(const Vector& constants, const Vector& numbers, size_t outputs) {
    require(constants.size() == outputs && numbers.size() == 4, "invalid constants of a bound");
    const double* number = numbers.data();
    return {number[0], number[1], number[2], number[3], copied(constants)};
}

void add_table(BoundedChain& self, const Matrix& rows) {
    self.tables.push_back(copied(rows, self.bias.size()));
}

void add_layer(BoundedChain& self, bool relu, const Matrix& breaks, const Matrix& slopes,
               const Matrix& intercepts, const Vector& factors, const Vector& reach,
               const Vector& lift, double gamma, double tiny, const Matrix& weights,
               const Matrix& sizes, const Vector& bias, const Vector& constants,
               const Vector& numbers) {
    const size_t neurons = self.outputs(), outputs = bias.size();
    require(slopes.shape(0) == breaks.shape(0) + 1 && intercepts.shape(0) == slopes.shape(0),
            "invalid activation: expected a piece more than breaks");
    require(factors.size() == neurons && reach.size() == lift.size() &&
                (reach.size() == 0 || reach.size() == neurons),
            "invalid bound of an activation: expected one number per neuron");
    require(weights.shape(0) == neurons && sizes.shape(0) == neurons,
            "invalid weights: expected one row per neuron");
    BoundedStep step;
    step.breaks = copied(breaks, neurons);
    step.slopes = copied(slopes, neurons);
    step.intercepts = copied(intercepts, neurons);
    step.factors = copied(factors);
    step.reach = copied(reach);
    step.lift = copied(lift);
    step.gamma = gamma;
    step.tiny = tiny;
    step.relu = relu;
    step.weights = copied(weights, outputs);
    step.sizes = copied(sizes, outputs);
    step.bias = copied(bias);
    step.terms = terms_of(constants, numbers, outputs);
    self.steps.push_back(std::move(step));
}

nb::object array(std::vector<double>* values, size_t rows, size_t columns) {
    nb::capsule owner(
        values, [](void* pointer) noexcept { delete static_cast<std::vector<double>*>(pointer); });
    return nb::cast(nb::ndarray<nb::numpy, double>(values->data(), {rows, columns}, owner));
}

// Return scores and error bounds, both (people, outputs).
nb::object scores(const BoundedChain& self, const Matrix& people, const Indices& indices) {
    const size_t count = people.shape(0);
    require(
        people.shape(1) == self.slopes.rows && indices.shape(0) == count &&
            indices.shape(1) == self.tables.size(),
        "invalid people: expected one row per person and the columns and tables of the network");
    for (size_t i = 0; i < indices.size(); ++i) {
        const auto rows = int64_t(self.tables[i % self.tables.size()].rows);
        require(indices.data()[i] >= 0 && indices.data()[i] < rows,
                "invalid row of a table: expected one that it has");
    }
    auto* values = new std::vector<double>(count * self.outputs());
    nb::object first = array(values, count, self.outputs());
    auto* errors = new std::vector<double>(count * self.outputs());
    nb::object second = array(errors, count, self.outputs());
    self.scores(people.data(), indices.data(), count, values->data(), errors->data());
    return nb::make_tuple(first, second);
}

}  // namespace

void bind_bounded(nb::module_& module) {
    nb::class_<BoundedChain>(module, "BoundedChain")
        .def("__init__",
             [](BoundedChain* self, const Matrix& slopes, const Matrix& sizes, double floor,
                const Vector& bias, const Vector& constants, const Vector& numbers) {
                 BoundedChain chain;
                 chain.slopes = copied(slopes, bias.size());
                 chain.sizes = copied(sizes, bias.size());
                 require(slopes.shape(0) == sizes.shape(0), "invalid sizes of slopes");
                 chain.floor = floor;
                 chain.bias = copied(bias);
                 chain.terms = terms_of(constants, numbers, bias.size());
                 new (self) BoundedChain(std::move(chain));
             })
        .def("add_table", &add_table)
        .def("add_layer", &add_layer)
        .def("scores", &scores);
}

}  // namespace feta

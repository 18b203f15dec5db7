// Module: the binding; no policy, only arrays in and arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "kernel.hpp"

namespace nb = nanobind;
using namespace feta;

namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<const uint64_t, nb::c_contig, nb::device::cpu>;

std::vector<double> copied(const Numbers& array) { return {array.data(), array.data() + array.size()}; }
std::vector<int32_t> copied(const Integers& array) { return {array.data(), array.data() + array.size()}; }
std::vector<uint64_t> copied(const Counts& array) { return {array.data(), array.data() + array.size()}; }

bool has_avx2() {
#if defined(FETA_HAVE_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

template <class T> nb::object array_of(std::vector<T>&& values, size_t rows, size_t columns) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<std::vector<T>*>(held); });
    if (columns == 0) return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), {rows}, owner));
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), {rows, columns}, owner));
}

nb::dict told(Answers&& all) {
    const size_t many = all.safe.size();
    nb::dict out;
    nb::dict open;
    for (size_t row = 0; row < many; ++row)
        if (!all.open[row].empty()) {
            const size_t size = all.open[row].size();
            open[nb::int_(row)] = array_of(std::move(all.open[row]), size, 0);
        }
    out["counts"] = array_of(std::move(all.counts), many, all.classes);
    out["safe"] = array_of(std::move(all.safe), many, 0);
    out["finished"] = array_of(std::move(all.finished), many, 0);
    out["found"] = array_of(std::move(all.found), many, 0);
    out["number"] = array_of(std::move(all.number), many, 0);
    out["bounded"] = array_of(std::move(all.bounded), many, 0);
    out["scored"] = array_of(std::move(all.scored), many, 0);
    out["open"] = open;
    return out;
}

struct PyKernel {
    ModelSpec spec;
    std::unique_ptr<Kernel> kernel;

    void finish(bool simd) {
#if defined(FETA_HAVE_AVX2)
        if (simd && has_avx2()) {
            kernel = make_avx2(spec);
            return;
        }
#endif
        (void)simd;
        kernel = make_portable(spec);
    }

    People people(const Numbers& constants, const Numbers& sizes) const {
        const size_t neurons = size_t(spec.neurons);
        if (constants.ndim() != 2 || constants.shape(1) != neurons || sizes.size() != constants.size())
            throw std::invalid_argument("constants and sizes must be (people, neurons)");
        return {constants.data(), sizes.data(), constants.shape(0)};
    }
};

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "The compiled lattice engine; feta.engine.lattice is its only user.";
    module.def("has_avx2", &has_avx2);
    nb::class_<PyKernel>(module, "Kernel")
        .def("__init__",
             [](PyKernel* self, const Numbers& bias, const Numbers& folded, int columns) {
                 new (self) PyKernel();
                 self->spec.neurons = int(bias.size());
                 self->spec.columns = columns;
                 self->spec.bias = copied(bias);
                 self->spec.folded = copied(folded);
             })
        .def("add_axis",
             [](PyKernel& self, const Numbers& terms, const Numbers& sizes, const Integers& order, const Integers& begin,
                const Integers& end, const Integers& left, const Integers& right, const Numbers& center,
                const Numbers& generator, const Numbers& rest, const Numbers& weight) {
                 AxisSpec axis;
                 axis.values = int(terms.shape(0));
                 axis.terms = copied(terms);
                 axis.sizes = copied(sizes);
                 axis.order = copied(order);
                 axis.begin = copied(begin);
                 axis.end = copied(end);
                 axis.left = copied(left);
                 axis.right = copied(right);
                 axis.center = copied(center);
                 axis.generator = copied(generator);
                 axis.rest = copied(rest);
                 axis.weight = copied(weight);
                 self.spec.axes.push_back(std::move(axis));
             })
        .def("add_layer",
             [](PyKernel& self, const Numbers& breaks, const Numbers& slopes, const Numbers& intercepts,
                const Numbers& weight, const Numbers& bias, const Numbers& folded) {
                 LayerSpec layer;
                 layer.outputs = int(weight.shape(0));
                 layer.inputs = int(weight.shape(1));
                 layer.weight = copied(weight);
                 layer.bias = copied(bias);
                 layer.folded = copied(folded);
                 layer.activation.pieces = int(slopes.shape(0));
                 layer.activation.width = int(slopes.shape(1));
                 layer.activation.breaks = copied(breaks);
                 layer.activation.slopes = copied(slopes);
                 layer.activation.intercepts = copied(intercepts);
                 self.spec.layers.push_back(std::move(layer));
             })
        .def("set_rule",
             [](PyKernel& self, int kind, double value, bool above, int chosen, int outputs, int classes) {
                 self.spec.rule = RuleSpec{RuleKind(kind), value, above, chosen, outputs, classes};
             })
        .def("set_source",
             [](PyKernel& self, double unit, double tiny, double huge, int extra, double slack) {
                 self.spec.source_unit = unit;
                 self.spec.source_tiny = tiny;
                 self.spec.source_huge = huge;
                 self.spec.source_extra = extra;
                 self.spec.source_slack = slack;
             })
        .def("finish", &PyKernel::finish)
        .def("tally",
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes, bool majority, double seconds,
                uint64_t evaluations, uint64_t nodes, int threads) {
                 const People people = self.people(constants, sizes);
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->tally(people, nullptr, Options{majority, seconds, nodes, evaluations, threads});
                 }
                 return told(std::move(all));
             })
        .def("tally_listed",
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes, const Integers& digits,
                const Counts& numbers, const Counts& votes, bool majority, double seconds,
                uint64_t evaluations, int threads) {
                 const People people = self.people(constants, sizes);
                 Listed listed{copied(digits), copied(numbers), copied(votes), 0};
                 for (const uint64_t one : listed.votes) listed.all_votes += one;
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->tally(people, &listed, Options{majority, seconds, 0, evaluations, threads});
                 }
                 return told(std::move(all));
             })
        .def("find",
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes, const Integers& own,
                const Numbers& scores, double epsilon, double doubt, double seconds,
                uint64_t evaluations, uint64_t nodes) {
                 const People people = self.people(constants, sizes);
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->find(people, own.data(), scores.data(), epsilon, doubt,
                                             Options{false, seconds, nodes, evaluations, 1});
                 }
                 return told(std::move(all));
             })
        .def("worst", [](PyKernel& self, const Numbers& constants, const Numbers& sizes, const Numbers& directions,
                         const Numbers& offsets, bool least, double seconds, uint64_t evaluations) {
            const People people = self.people(constants, sizes);
            const Goal goal{int(directions.shape(0)), copied(directions), copied(offsets), least};
            Answers all;
            {
                nb::gil_scoped_release free;
                all = self.kernel->worst(people, goal, Options{false, seconds, 0, evaluations, 1});
            }
            return told(std::move(all));
        });
}

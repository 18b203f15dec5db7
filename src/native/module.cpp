// Module: the binding; no policy, only arrays in and arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "kernel.hpp"
#include "tree.hpp"

namespace nb = nanobind;
using namespace feta;

namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<const uint64_t, nb::c_contig, nb::device::cpu>;

std::vector<double> copied(const Numbers& array) {
    return {array.data(), array.data() + array.size()};
}
std::vector<int32_t> copied(const Integers& array) {
    return {array.data(), array.data() + array.size()};
}
std::vector<uint64_t> copied(const Counts& array) {
    return {array.data(), array.data() + array.size()};
}

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
    out["at"] = array_of(std::move(all.at), many, 0);
    out["least"] = array_of(std::move(all.least), many, 0);
    out["most"] = array_of(std::move(all.most), many, 0);
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
        if (constants.ndim() != 2 || constants.shape(1) != neurons ||
            sizes.size() != constants.size())
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
             [](PyKernel& self, const Numbers& terms, const Numbers& sizes) {
                 AxisSpec axis;
                 axis.values = int(terms.shape(0));
                 axis.terms = copied(terms);
                 axis.sizes = copied(sizes);
                 self.spec.axes.push_back(std::move(axis));
             })
        .def("add_real_axis",
             [](PyKernel& self, double low, double high, const Numbers& slopes) {
                 AxisSpec axis;
                 axis.values = 64;  // pieces of its range
                 axis.real = true;
                 axis.low = low;
                 axis.high = high;
                 axis.slopes = copied(slopes);
                 self.spec.axes.push_back(std::move(axis));
             })
        .def(
            "set_shared",
            [](PyKernel& self, int width, const Integers& columns, const Numbers& slopes,
               const Numbers& low, const Numbers& high, const Flags& whole, const Integers& group) {
                self.spec.shared = SharedSpec{
                    width,        copied(columns), copied(slopes),
                    copied(low),  copied(high),    {whole.data(), whole.data() + whole.size()},
                    copied(group)};
            })
        .def("add_layer",
             [](PyKernel& self, const Numbers& breaks, const Numbers& slopes,
                const Numbers& intercepts, const Numbers& weight, const Numbers& bias,
                const Numbers& folded) {
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
             [](PyKernel& self, int kind, double value, bool above, int chosen, int outputs,
                int classes) {
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
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes, bool majority,
                double seconds, uint64_t evaluations, uint64_t nodes, int threads) {
                 const People people = self.people(constants, sizes);
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->tally(
                         people, nullptr, Options{majority, seconds, nodes, evaluations, threads});
                 }
                 return told(std::move(all));
             })
        .def("tally_listed",
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes,
                const Counts& numbers, const Counts& votes, bool majority, double seconds,
                uint64_t evaluations, int threads) {
                 const People people = self.people(constants, sizes);
                 Listed listed{copied(numbers), copied(votes), 0};
                 for (const uint64_t one : listed.votes) listed.all_votes += one;
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->tally(people, &listed,
                                              Options{majority, seconds, 0, evaluations, threads});
                 }
                 return told(std::move(all));
             })
        .def("find",
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes, const Integers& own,
                const Numbers& centers, double half, double seconds, uint64_t evaluations,
                uint64_t nodes) {
                 const People people = self.people(constants, sizes);
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->find(people, own.data(), centers.data(), half,
                                             Options{false, seconds, nodes, evaluations, 1});
                 }
                 return told(std::move(all));
             })
        .def("worst",
             [](PyKernel& self, const Numbers& constants, const Numbers& sizes,
                const Numbers& directions, const Numbers& offsets, const Integers& kind,
                const Numbers& floors, bool nearly, bool least, double seconds,
                uint64_t evaluations, int threads) {
                 const People people = self.people(constants, sizes);
                 const Goals goals{int(directions.shape(1)),
                                   directions.data(),
                                   offsets.data(),
                                   kind.data(),
                                   floors.data(),
                                   nearly,
                                   least};
                 Answers all;
                 {
                     nb::gil_scoped_release free;
                     all = self.kernel->worst(people, goals,
                                              Options{false, seconds, 0, evaluations, threads});
                 }
                 return told(std::move(all));
             })
        .def(
            "worst_real",
            [](PyKernel& self, const Numbers& constants, const Numbers& sizes, const Numbers& signs,
               const Numbers& floors, double seconds, uint64_t evaluations, int threads) {
                const People people = self.people(constants, sizes);
                Answers all;
                {
                    nb::gil_scoped_release free;
                    all = self.kernel->worst_real(people, signs.data(), floors.data(),
                                                  Options{false, seconds, 0, evaluations, threads});
                }
                return told(std::move(all));
            })
        // Each row's majority, as classes or, of two, as booleans; None if a row may lie outside the
        // space, or is not settled here.
        .def("majority",
             [](PyKernel& self, const Numbers& rows, bool of_two, bool ties_to_last, uint64_t nodes,
                int threads) -> nb::object {
                 const size_t many = rows.ndim() == 2 ? rows.shape(0) : 0;
                 if (many == 0 || rows.shape(1) != size_t(self.spec.shared.width))
                     return nb::none();
                 std::vector<int32_t> winners(many, -1);
                 bool good = true;
                 {
                     nb::gil_scoped_release free;
                     good = self.kernel->majority(rows.data(), many, ties_to_last,
                                                  Options{true, -1.0, nodes, 0, threads},
                                                  winners.data());
                 }
                 if (!good || *std::min_element(winners.begin(), winners.end()) < 0)
                     return nb::none();
                 if (!of_two)
                     return array_of(std::vector<int64_t>(winners.begin(), winners.end()), many, 0);
                 auto* yes = new bool[many];
                 nb::capsule owner(yes,
                                   [](void* held) noexcept { delete[] static_cast<bool*>(held); });
                 std::copy(winners.begin(), winners.end(), yes);
                 return nb::cast(nb::ndarray<nb::numpy, bool>(yes, {many}, owner));
             });
    module.def(
        "split_axis",
        [](const Numbers& terms, const Numbers& importance) {
            AxisSpec axis;
            axis.values = int(terms.shape(0));
            axis.terms = copied(terms);
            const std::vector<double> matters = copied(importance);
            Tree tree = TreeBuilder(axis, matters).tree;
            const size_t nodes = size_t(tree.nodes()), neurons = size_t(tree.neurons);
            nb::dict out;
            out["order"] = array_of(std::move(tree.order), size_t(axis.values), 0);
            out["begin"] = array_of(std::move(tree.begin), nodes, 0);
            out["end"] = array_of(std::move(tree.end), nodes, 0);
            out["left"] = array_of(std::move(tree.left), nodes, 0);
            out["right"] = array_of(std::move(tree.right), nodes, 0);
            out["center"] = array_of(std::move(tree.center), nodes, neurons);
            out["generator"] = array_of(std::move(tree.generator), nodes, neurons);
            out["rest"] = array_of(std::move(tree.rest), nodes, neurons);
            return out;
        },
        "An attribute's tree, for tests.");
}

// Module: the Python binding. It converts arrays in both directions and holds no policy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "bounded_module.hpp"
#include "exact_module.hpp"
#include "kernel.hpp"
#include "tree.hpp"

namespace nb = nanobind;
using namespace feta;

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<const uint64_t, nb::c_contig, nb::device::cpu>;

std::vector<double> to_vector(const Doubles& array) {
    return {array.data(), array.data() + array.size()};
}
std::vector<int32_t> to_vector(const Integers& array) {
    return {array.data(), array.data() + array.size()};
}
std::vector<uint64_t> to_vector(const Counts& array) {
    return {array.data(), array.data() + array.size()};
}

bool has_avx2() {
#if defined(FETA_HAVE_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

std::string shape_of(const Doubles& array) {
    std::string text = "(";
    for (size_t d = 0; d < array.ndim(); ++d)
        text += (d ? ", " : "") + std::to_string(array.shape(d));
    return text + ")";
}

// Move a vector into a numpy array; it has one dimension if `columns` is 0.
template <class T> nb::object array_of(std::vector<T>&& values, size_t rows, size_t columns) {
    auto* storage = new std::vector<T>(std::move(values));
    nb::capsule owner(storage,
                      [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    if (columns == 0) return nb::cast(nb::ndarray<nb::numpy, T>(storage->data(), {rows}, owner));
    return nb::cast(nb::ndarray<nb::numpy, T>(storage->data(), {rows, columns}, owner));
}

// Move the results into a dictionary of arrays, one row per person. `undecided` has an entry only
// for people with undecided counterparts.
nb::dict results_dict(Results&& results) {
    const size_t count = results.runtime_safe.size();
    nb::dict out;
    nb::dict undecided;
    for (size_t row = 0; row < count; ++row)
        if (!results.undecided_ids[row].empty()) {
            const size_t size = results.undecided_ids[row].size();
            undecided[nb::int_(row)] = array_of(std::move(results.undecided_ids[row]), size, 0);
        }
    out["counts"] = array_of(std::move(results.counts), count, results.classes);
    out["safe"] = array_of(std::move(results.runtime_safe), count, 0);
    out["finished"] = array_of(std::move(results.finished), count, 0);
    out["found"] = array_of(std::move(results.has_match), count, 0);
    out["number"] = array_of(std::move(results.assignment_id), count, 0);
    out["bounded"] = array_of(std::move(results.bounded_nodes), count, 0);
    out["scored"] = array_of(std::move(results.scored_points), count, 0);
    out["at"] = array_of(std::move(results.real_value), count, 0);
    out["least"] = array_of(std::move(results.best_score), count, 0);
    out["most"] = array_of(std::move(results.upper_bound), count, 0);
    out["open"] = undecided;
    return out;
}

struct PyKernel {
    ModelSpec spec;
    std::unique_ptr<Kernel> kernel;

    // Build the kernel from the complete specification, for the fastest instruction set if `simd`.
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

    People people(const Doubles& constants, const Doubles& magnitudes) const {
        const size_t neurons = size_t(spec.neurons);
        if (constants.ndim() != 2 || constants.shape(1) != neurons ||
            magnitudes.size() != constants.size())
            throw std::invalid_argument("invalid shape of constants or magnitudes: got " +
                                        shape_of(constants) + " and " + shape_of(magnitudes) +
                                        "; expected (people, " + std::to_string(neurons) + ")");
        return {constants.data(), magnitudes.data(), constants.shape(0)};
    }
};

// A vote belongs to the kernel that it was made for.
struct PyMeanVote {
    std::unique_ptr<MeanVote> vote;
    const Kernel* owner;
};

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Compiled bounds and scores over sensitive lattices; src/native documents them.";
    module.def("has_avx2", &has_avx2);
    bind_exact(module);
    bind_bounded(module);
    nb::class_<PyMeanVote>(module, "MeanVote");
    nb::class_<PyKernel>(module, "Kernel")
        .def("__init__",
             [](PyKernel* self, const Doubles& bias, const Doubles& cancelled_magnitude,
                int columns) {
                 new (self) PyKernel();
                 self->spec.neurons = int(bias.size());
                 self->spec.columns = columns;
                 self->spec.bias = to_vector(bias);
                 self->spec.cancelled_magnitude = to_vector(cancelled_magnitude);
             })
        .def("add_axis",
             [](PyKernel& self, const Doubles& terms, const Doubles& magnitudes) {
                 AxisSpec axis;
                 axis.values = int(terms.shape(0));
                 axis.terms = to_vector(terms);
                 axis.magnitudes = to_vector(magnitudes);
                 self.spec.axes.push_back(std::move(axis));
             })
        .def("add_real_axis",
             [](PyKernel& self, double low, double high, const Doubles& slopes) {
                 AxisSpec axis;
                 axis.values = 64;  // pieces of its range
                 axis.real = true;
                 axis.low = low;
                 axis.high = high;
                 axis.slopes = to_vector(slopes);
                 self.spec.axes.push_back(std::move(axis));
             })
        .def("set_shared",
             [](PyKernel& self, int width, const Integers& columns, const Doubles& slopes,
                const Doubles& low, const Doubles& high, const Flags& integer,
                const Integers& group) {
                 self.spec.shared = SharedSpec{width,
                                               to_vector(columns),
                                               to_vector(slopes),
                                               to_vector(low),
                                               to_vector(high),
                                               {integer.data(), integer.data() + integer.size()},
                                               to_vector(group)};
             })
        .def("add_layer",
             [](PyKernel& self, const Doubles& breaks, const Doubles& slopes,
                const Doubles& intercepts, const Doubles& weight, const Doubles& bias,
                const Doubles& cancelled_magnitude) {
                 LayerSpec layer;
                 layer.outputs = int(weight.shape(0));
                 layer.inputs = int(weight.shape(1));
                 layer.weight = to_vector(weight);
                 layer.bias = to_vector(bias);
                 layer.cancelled_magnitude = to_vector(cancelled_magnitude);
                 layer.activation.pieces = int(slopes.shape(0));
                 layer.activation.width = int(slopes.shape(1));
                 layer.activation.breaks = to_vector(breaks);
                 layer.activation.slopes = to_vector(slopes);
                 layer.activation.intercepts = to_vector(intercepts);
                 self.spec.layers.push_back(std::move(layer));
             })
        .def("set_rule",
             [](PyKernel& self, int kind, double value, bool above, int chosen, int outputs,
                int classes) {
                 self.spec.rule = RuleSpec{RuleKind(kind), value, above, chosen, outputs, classes};
             })
        .def("set_source",
             [](PyKernel& self, double unit, double tiny, double huge, int extra_roundings,
                double source_error) {
                 self.spec.source_unit = unit;
                 self.spec.source_tiny = tiny;
                 self.spec.source_huge = huge;
                 self.spec.source_extra_roundings = extra_roundings;
                 self.spec.source_error = source_error;
             })
        .def("finish", &PyKernel::finish)
        .def("tally",
             [](PyKernel& self, const Doubles& constants, const Doubles& magnitudes, bool majority,
                double seconds, uint64_t evaluations, uint64_t nodes, int threads) {
                 const People people = self.people(constants, magnitudes);
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results = self.kernel->tally(
                         people, nullptr, Options{majority, seconds, nodes, evaluations, threads});
                 }
                 return results_dict(std::move(results));
             })
        .def("tally_listed",
             [](PyKernel& self, const Doubles& constants, const Doubles& magnitudes,
                const Counts& assignment_ids, const Counts& votes, bool majority, double seconds,
                uint64_t evaluations, int threads) {
                 const People people = self.people(constants, magnitudes);
                 ListedAssignments listed{to_vector(assignment_ids), to_vector(votes), 0};
                 for (const uint64_t vote : listed.votes) listed.total_votes += vote;
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results = self.kernel->tally(
                         people, &listed, Options{majority, seconds, 0, evaluations, threads});
                 }
                 return results_dict(std::move(results));
             })
        .def("find",
             [](PyKernel& self, const Doubles& constants, const Doubles& magnitudes,
                const Integers& reference, const Doubles& centers, double half, double seconds,
                uint64_t evaluations, uint64_t nodes) {
                 const People people = self.people(constants, magnitudes);
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results = self.kernel->find(people, reference.data(), centers.data(), half,
                                                 Options{false, seconds, nodes, evaluations, 1});
                 }
                 return results_dict(std::move(results));
             })
        .def("worst",
             [](PyKernel& self, const Doubles& constants, const Doubles& magnitudes,
                const Doubles& directions, const Doubles& offsets, const Integers& kind,
                const Doubles& floors, bool approximate, bool smallest, double seconds,
                uint64_t evaluations, int threads) {
                 const People people = self.people(constants, magnitudes);
                 const Objectives objectives{int(directions.shape(1)),
                                             directions.data(),
                                             offsets.data(),
                                             kind.data(),
                                             floors.data(),
                                             approximate,
                                             smallest};
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results = self.kernel->worst(people, objectives,
                                                  Options{false, seconds, 0, evaluations, threads});
                 }
                 return results_dict(std::move(results));
             })
        .def("worst_real",
             [](PyKernel& self, const Doubles& constants, const Doubles& magnitudes,
                const Doubles& signs, const Doubles& floors, double seconds, uint64_t evaluations,
                int threads) {
                 const People people = self.people(constants, magnitudes);
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results =
                         self.kernel->worst_real(people, signs.data(), floors.data(),
                                                 Options{false, seconds, 0, evaluations, threads});
                 }
                 return results_dict(std::move(results));
             })
        // Return the majority of each row, for two classes as booleans, otherwise as classes.
        // Return None if a row may lie outside the space or the kernel cannot decide it.
        .def("majority",
             [](PyKernel& self, const Doubles& rows, bool of_two, bool ties_to_last, uint64_t nodes,
                int threads) -> nb::object {
                 const size_t count = rows.ndim() == 2 ? rows.shape(0) : 0;
                 if (count == 0 || rows.shape(1) != size_t(self.spec.shared.width))
                     return nb::none();
                 std::vector<int32_t> winners(count, -1);
                 bool valid = true;
                 {
                     nb::gil_scoped_release released;
                     valid = self.kernel->majority(rows.data(), count, ties_to_last,
                                                   Options{true, -1.0, nodes, 0, threads},
                                                   winners.data());
                 }
                 if (!valid || *std::min_element(winners.begin(), winners.end()) < 0)
                     return nb::none();
                 if (!of_two)
                     return array_of(std::vector<int64_t>(winners.begin(), winners.end()), count,
                                     0);
                 auto* favorable = new bool[count];
                 nb::capsule owner(favorable, [](void* pointer) noexcept {
                     delete[] static_cast<bool*>(pointer);
                 });
                 std::copy(winners.begin(), winners.end(), favorable);
                 return nb::cast(nb::ndarray<nb::numpy, bool>(favorable, {count}, owner));
             })
        .def("mean_vote",
             [](PyKernel& self, const Counts& assignment_ids, const Counts& votes,
                const Doubles& thresholds, const Doubles& grades, bool above, double edge) {
                 if (assignment_ids.size() != votes.size() || self.spec.rule.outputs != 1 ||
                     (grades.size() && grades.size() != thresholds.size() + 1))
                     throw std::invalid_argument(
                         "invalid vote: expected one score, one vote per assignment, and one grade "
                         "more than thresholds");
                 const MeanSpec spec{to_vector(assignment_ids),
                                     to_vector(votes),
                                     to_vector(thresholds),
                                     to_vector(grades),
                                     above,
                                     edge};
                 return PyMeanVote{self.kernel->mean_vote(spec), self.kernel.get()};
             })
        // Return 1, 0, or −1 if undecided, per row. Return None if a row may lie outside the space.
        .def("means",
             [](PyKernel& self, const Doubles& rows, const PyMeanVote& vote,
                int threads) -> nb::object {
                 const size_t count = rows.ndim() == 2 ? rows.shape(0) : 0;
                 if (vote.owner != self.kernel.get())
                     throw std::invalid_argument("invalid vote: expected one of this kernel");
                 if (count == 0 || rows.shape(1) != size_t(self.spec.shared.width))
                     return nb::none();
                 std::vector<int32_t> decisions(count, -1);
                 bool valid = true;
                 {
                     nb::gil_scoped_release released;
                     valid =
                         self.kernel->means(rows.data(), count, *vote.vote,
                                            Options{false, -1.0, 0, 0, threads}, decisions.data());
                 }
                 if (!valid) return nb::none();
                 return array_of(std::move(decisions), count, 0);
             });
    module.def(
        "split_axis",
        [](const Doubles& terms, const Doubles& importance) {
            AxisSpec axis;
            axis.values = int(terms.shape(0));
            axis.terms = to_vector(terms);
            const std::vector<double> importances = to_vector(importance);
            Tree tree = TreeBuilder(axis, importances).tree;
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
        "Return the tree of one attribute, for tests.");
}

// Module: the Python binding of networks. It checks and converts arrays, and holds no policy.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "binding.hpp"
#include "bounded_module.hpp"
#include "exact_module.hpp"
#include "kernel.hpp"
#include "smooth_module.hpp"

namespace nb = nanobind;
using namespace feta;
using namespace feta::binding;

namespace {

using MakeKernel = std::unique_ptr<Kernel>(const ModelSpec&, const Tree*);

// A kernel for one instruction set. No answer depends on it.
struct InstructionSet {
    const char* name;
    MakeKernel* make;
};

// Return the instruction sets of this processor, the fastest first.
std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets;
#if defined(FETA_HAVE_X86)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        sets.push_back({"avx512", &make_avx512});
    if (avx2) sets.push_back({"avx2", &make_avx2});
#endif
    sets.push_back({"portable", &make_portable});
    return sets;
}

// The fastest instruction set that new kernels may use; "" for all.
std::string fastest_allowed;

void allow_instructions(const std::string& name) {
    for (const InstructionSet& set : instruction_sets())
        if (set.name == name) {
            fastest_allowed = name;
            return;
        }
    throw std::invalid_argument("unknown instruction set: expected one of instruction_sets()");
}

std::vector<std::string> names_of_sets() {
    std::vector<std::string> names;
    for (const InstructionSet& set : instruction_sets()) names.emplace_back(set.name);
    return names;
}

// One row per person; `undecided_ids` has only people with undecided counterparts.
struct PyResults {
    nb::object counts, runtime_safe, finished, has_match, assignment_ids, bounded_nodes,
        scored_points, real_values, best_scores, upper_bounds;
    nb::dict undecided_ids;

    explicit PyResults(Results&& from) : undecided_ids(by_row(from.undecided_ids)) {
        const size_t count = from.runtime_safe.size();
        counts = array_of(std::move(from.counts), count, from.classes);
        runtime_safe = array_of(std::move(from.runtime_safe), count);
        finished = array_of(std::move(from.finished), count);
        has_match = array_of(std::move(from.has_match), count);
        assignment_ids = array_of(std::move(from.assignment_id), count);
        bounded_nodes = array_of(std::move(from.bounded_nodes), count);
        scored_points = array_of(std::move(from.scored_points), count);
        real_values = array_of(std::move(from.real_value), count);
        best_scores = array_of(std::move(from.best_score), count);
        upper_bounds = array_of(std::move(from.upper_bound), count);
    }
};

struct PyNodeBounds {
    nb::object low, high, backward_low, backward_high, source_errors, errors32, errors64, scores32,
        scores64, below, above;
    nb::dict not_below, not_above;

    PyNodeBounds(NodeBounds&& from, size_t nodes, size_t points)
        : not_below(by_row(from.not_below)), not_above(by_row(from.not_above)) {
        const size_t outputs = from.outputs;
        const size_t n_backward = from.backward_low.size();
        low = array_of(std::move(from.low), nodes, outputs);
        high = array_of(std::move(from.high), nodes, outputs);
        backward_low = array_of(std::move(from.backward_low), n_backward);
        backward_high = array_of(std::move(from.backward_high), n_backward);
        const size_t n_counted = from.below.size();
        below = array_of(std::move(from.below), n_counted);
        above = array_of(std::move(from.above), n_counted);
        source_errors = array_of(std::move(from.source_errors), outputs);
        errors32 = array_of(std::move(from.errors32), outputs);
        errors64 = array_of(std::move(from.errors64), outputs);
        scores32 = array_of(std::move(from.scores32), points, outputs);
        scores64 = array_of(std::move(from.scores64), points, outputs);
    }
};

struct PyTree {
    nb::object order, begin, end, left, right, center, generator, rest;

    explicit PyTree(Tree&& from) {
        const size_t nodes = size_t(from.nodes()), neurons = size_t(from.neurons);
        const size_t values = from.order.size();
        order = array_of(std::move(from.order), values);
        begin = array_of(std::move(from.begin), nodes);
        end = array_of(std::move(from.end), nodes);
        left = array_of(std::move(from.left), nodes);
        right = array_of(std::move(from.right), nodes);
        center = array_of(std::move(from.center), nodes, neurons);
        generator = array_of(std::move(from.generator), nodes, neurons);
        rest = array_of(std::move(from.rest), nodes, neurons);
    }
};

// A vote belongs to the kernel that it was made for.
struct PyMeanVote {
    std::unique_ptr<MeanVote> vote;
    const Kernel* owner;
};

// A model is described first, then `finish` makes the kernel, then it answers.
class PyKernel {
  public:
    PyKernel(const Doubles& bias, const Doubles& cancelled_magnitude, int columns) {
        check(bias.ndim() == 1 && bias.size() > 0 && columns >= 0,
              "invalid first layer: expected one bias per neuron, and a number of columns");
        spec.neurons = int(bias.size());
        spec.columns = columns;
        spec.bias = finite("a bias", bias, {bias.size()});
        spec.cancelled_magnitude =
            finite("a cancelled magnitude", cancelled_magnitude, {bias.size()});
        outputs = bias.size();
    }

    void add_axis(const Doubles& terms, const Doubles& magnitudes) {
        const std::vector<size_t> shape{terms.ndim() ? terms.shape(0) : 0, size_t(spec.neurons)};
        check(shape[0] > 0, "invalid axis: got no values; expected at least one");
        AxisSpec axis;
        axis.values = int(shape[0]);
        axis.terms = finite("the terms of an axis", terms, shape);
        axis.magnitudes = finite("the magnitudes of an axis", magnitudes, shape);
        open().axes.push_back(std::move(axis));
    }

    void add_real_axis(double low, double high, const Doubles& slopes) {
        check(std::isfinite(low) && std::isfinite(high) && low <= high,
              "invalid range of an axis: expected finite numbers, low <= high");
        for (const AxisSpec& axis : spec.axes)
            check(!axis.real, "invalid axis: expected at most one real-valued axis");
        AxisSpec axis;
        axis.values = 64;  // pieces of its range
        axis.real = true;
        axis.low = low;
        axis.high = high;
        axis.slopes = finite("the slopes of an axis", slopes, {size_t(spec.neurons)});
        open().axes.push_back(std::move(axis));
    }

    void set_shared(int width, const Integers& columns, const Doubles& slopes, const Doubles& low,
                    const Doubles& high, const Flags& integer, const Integers& group) {
        const size_t count = columns.size();
        check_shape("the shared columns", columns, {count});
        check_shape("the domains", low, {count});
        check_shape("the domains", high, {count});
        check_no_nan("domains", low);
        check_no_nan("domains", high);
        check_shape("the kinds of columns", integer, {count});
        check_shape("the groups", group, {count});
        for (size_t c = 0; c < count; ++c)
            check(columns.data()[c] >= 0 && columns.data()[c] < width,
                  "invalid shared column: expected one of the row");
        open().shared = SharedSpec{
            width,
            to_vector(columns),
            finite("the slopes of shared columns", slopes, {count, size_t(spec.neurons)}),
            to_vector(low),
            to_vector(high),
            to_vector(integer),
            to_vector(group)};
    }

    void add_layer(const Doubles& breaks, const Doubles& slopes, const Doubles& intercepts,
                   const Doubles& weight, const Doubles& bias, const Doubles& cancelled_magnitude) {
        check(slopes.ndim() == 2 && slopes.shape(0) > 0 &&
                  (slopes.shape(1) == 1 || slopes.shape(1) == outputs),
              "invalid activation: expected slopes of one or more pieces, for one or all neurons");
        const size_t pieces = slopes.shape(0), width = slopes.shape(1);
        LayerSpec layer = affine_layer(weight, bias, cancelled_magnitude);
        layer.activation.pieces = int(pieces);
        layer.activation.width = int(width);
        layer.activation.breaks = finite("breaks", breaks, {pieces - 1, width});
        layer.activation.slopes = finite("slopes", slopes, {pieces, width});
        layer.activation.intercepts = finite("intercepts", intercepts, {pieces, width});
        open().layers.push_back(std::move(layer));
        outputs = weight.shape(0);
    }

    // Add a layer after a smooth activation.
    void add_smooth_layer(const SmoothSpec& smooth, const Flags& on, const Doubles& weight,
                          const Doubles& bias, const Doubles& cancelled_magnitude) {
        check(smooth.kind != SmoothSpec::none, "invalid activation: expected a function");
        check(on.ndim() == 1 && (on.size() == 1 || on.size() == outputs),
              "invalid activation: expected one flag, or one for each neuron");
        LayerSpec layer = affine_layer(weight, bias, cancelled_magnitude);
        layer.activation.smooth = smooth;
        layer.activation.slopes = {smooth.steepest};  // how trees weigh a neuron
        layer.activation.intercepts = {0.0};
        layer.activation.smooth.on = to_vector(on);
        open().layers.push_back(std::move(layer));
        outputs = weight.shape(0);
    }

    void set_rule(int kind, double value, bool above, int chosen, int n_outputs, int classes) {
        check(kind >= 0 && kind <= int(RuleKind::tolerance) && !std::isnan(value) && chosen >= 0 &&
                  n_outputs > 0 && (chosen < n_outputs || chosen == 0) && classes >= 0,
              "invalid rule: expected a known comparison, a number, and a class of the outputs");
        open().rule = RuleSpec{RuleKind(kind), value, above, chosen, n_outputs, classes};
    }

    void set_source(double unit, double tiny, double huge, int extra_roundings,
                    double source_error) {
        check(unit > 0 && tiny >= 0 && huge > 0 && extra_roundings >= 0 && source_error >= 0,
              "invalid arithmetic of a source: expected positive constants");
        ModelSpec& to = open();
        to.source_unit = unit;
        to.source_tiny = tiny;
        to.source_huge = huge;
        to.source_extra_roundings = extra_roundings;
        to.source_error = source_error;
    }

    void set_forms_from(uint64_t counterparts) { open().forms_from = counterparts; }

    // Build the kernel from the complete specification, for the fastest instruction set if `simd`.
    void finish(bool simd) {
        check(size_t(open().rule.outputs) == outputs,
              "invalid rule: expected as many outputs as the last layer has");
        const std::vector<Tree> trees = build_trees(spec);
        bool allowed = fastest_allowed.empty();
        for (const InstructionSet& set : instruction_sets()) {
            allowed |= set.name == fastest_allowed;
            if ((allowed && simd) || set.make == &make_portable) {
                kernel = set.make(spec, trees.data());
                return;
            }
        }
    }

    PyResults tally(const Doubles& constants, const Doubles& magnitudes, bool majority,
                    double seconds, uint64_t evaluations, uint64_t nodes, int threads) {
        const People all = people(constants, magnitudes);
        const Options options{majority, seconds, nodes, evaluations, threads};
        return run([&](Kernel& with) { return with.tally(all, nullptr, options); });
    }

    PyResults tally_listed(const Doubles& constants, const Doubles& magnitudes,
                           const Counts& assignment_ids, const Counts& votes, bool majority,
                           double seconds, uint64_t evaluations, int threads) {
        const People all = people(constants, magnitudes);
        check_shape("the votes", votes, {assignment_ids.size()});
        check_ids(assignment_ids);
        ListedAssignments listed{to_vector(assignment_ids), to_vector(votes), 0};
        for (const uint64_t vote : listed.votes) listed.total_votes += vote;
        const Options options{majority, seconds, 0, evaluations, threads};
        return run([&](Kernel& with) { return with.tally(all, &listed, options); });
    }

    PyResults find(const Doubles& constants, const Doubles& magnitudes, const Integers& reference,
                   const Doubles& centers, double half, double seconds, uint64_t evaluations,
                   uint64_t nodes) {
        const People all = people(constants, magnitudes);
        check_shape("the references", reference, {all.count});
        check_shape("the centers", centers, {all.count});
        check_no_nan("centers", centers);
        const Options options{false, seconds, nodes, evaluations, 1};
        return run([&](Kernel& with) {
            return with.find(all, reference.data(), centers.data(), half, options);
        });
    }

    PyResults worst(const Doubles& constants, const Doubles& magnitudes, const Doubles& directions,
                    const Doubles& offsets, const Integers& kind, const Doubles& floors,
                    bool approximate, bool smallest, double seconds, uint64_t evaluations,
                    int threads) {
        const People all = people(constants, magnitudes);
        check(directions.ndim() == 3, "invalid directions: expected (kinds, rows, outputs)");
        check_shape("the directions", directions,
                    {directions.shape(0), directions.shape(1), outputs});
        check_finite("directions", directions);
        check_shape("the offsets", offsets, {all.count, directions.shape(1)});
        check_no_nan("offsets", offsets);
        check_shape("the kinds", kind, {all.count});
        for (size_t row = 0; row < all.count; ++row)
            check(kind.data()[row] >= 0 && size_t(kind.data()[row]) < directions.shape(0),
                  "invalid kind: expected one of the directions");
        check_shape("the floors", floors, {all.count});
        check_no_nan("floors", floors);
        const Objectives objectives{int(directions.shape(1)),
                                    directions.data(),
                                    offsets.data(),
                                    kind.data(),
                                    floors.data(),
                                    approximate,
                                    smallest};
        const Options options{false, seconds, 0, evaluations, threads};
        return run([&](Kernel& with) { return with.worst(all, objectives, options); });
    }

    PyResults worst_real(const Doubles& constants, const Doubles& magnitudes, const Doubles& signs,
                         const Doubles& floors, double seconds, uint64_t evaluations, int threads) {
        const People all = people(constants, magnitudes);
        check_shape("the signs", signs, {all.count});
        check_shape("the floors", floors, {all.count});
        check_no_nan("signs", signs);
        check_no_nan("floors", floors);
        check(outputs == 1 && has_real_axis(),
              "invalid call of worst_real: expected one score and a real-valued axis");
        const Options options{false, seconds, 0, evaluations, threads};
        return run([&](Kernel& with) {
            return with.worst_real(all, signs.data(), floors.data(), options);
        });
    }

    // Return the majority of each row, for two classes as booleans, otherwise as classes. Return
    // None if a row may lie outside the space or the kernel cannot decide it.
    nb::object majority(const Doubles& rows, bool of_two, bool ties_to_last, uint64_t nodes,
                        int threads) {
        if (!reads(rows)) return nb::none();
        std::vector<int32_t> winners(rows.shape(0), -1);
        const Options options{true, -1.0, nodes, 0, threads};
        bool valid = true;
        {
            nb::gil_scoped_release released;
            valid =
                made().majority(rows.data(), winners.size(), ties_to_last, options, winners.data());
        }
        if (!valid || *std::min_element(winners.begin(), winners.end()) < 0) return nb::none();
        if (of_two) return booleans_of(winners);
        return array_of(std::vector<int64_t>(winners.begin(), winners.end()), winners.size());
    }

    PyMeanVote mean_vote(const Counts& assignment_ids, const Counts& votes,
                         const Doubles& thresholds, const Doubles& grades, bool above,
                         double edge) {
        check(assignment_ids.size() == votes.size() && outputs == 1 && !std::isnan(edge) &&
                  (grades.size() == 0 || grades.size() == thresholds.size() + 1),
              "invalid vote: expected one score, one vote per assignment, and one grade more than "
              "thresholds");
        check_no_nan("thresholds", thresholds);
        check_no_nan("grades", grades);
        check_ids(assignment_ids);
        const MeanSpec vote{to_vector(assignment_ids),
                            to_vector(votes),
                            to_vector(thresholds),
                            to_vector(grades),
                            above,
                            edge};
        return PyMeanVote{made().mean_vote(vote), kernel.get()};
    }

    // Return 1, 0, or −1 if undecided, per row. Return None if a row may lie outside the space.
    nb::object means(const Doubles& rows, const PyMeanVote& vote, int threads) {
        check(vote.owner == &made(), "invalid vote: expected one of this kernel");
        if (!reads(rows)) return nb::none();
        std::vector<int32_t> decisions(rows.shape(0), -1);
        const Options options{false, -1.0, 0, 0, threads};
        bool valid = true;
        {
            nb::gil_scoped_release released;
            valid =
                kernel->means(rows.data(), decisions.size(), *vote.vote, options, decisions.data());
        }
        if (!valid) return nb::none();
        const size_t count = decisions.size();
        return array_of(std::move(decisions), count);
    }

    PyTree tree(size_t axis) const {
        check(axis < spec.axes.size(), "invalid axis: expected one that was added");
        return PyTree(std::move(build_trees(spec)[axis]));
    }

    PyNodeBounds node_bounds(const Doubles& constants, const Doubles& magnitudes,
                             const Integers& nodes, const Integers& points) {
        const People person = people(constants, magnitudes);
        check(person.count == 1 && nodes.ndim() == 2 && points.ndim() == 2 && !has_real_axis(),
              "invalid bounds: expected one person, and nodes and points by axis");
        const size_t axes = spec.axes.size();
        check_shape("the nodes", nodes, {nodes.shape(0), axes});
        check_shape("the points", points, {points.shape(0), axes});
        for (size_t i = 0; i < nodes.size(); ++i)
            check(nodes.data()[i] >= 0 && nodes.data()[i] < 2 * spec.axes[i % axes].values - 1,
                  "invalid node: expected one of the tree");
        for (size_t i = 0; i < points.size(); ++i)
            check(points.data()[i] >= 0 && points.data()[i] < spec.axes[i % axes].values,
                  "invalid point: expected values of the axes");
        return {made().node_bounds(person,
                                   {nodes.data(), nodes.shape(0), points.data(), points.shape(0)}),
                nodes.shape(0), points.shape(0)};
    }

  private:
    ModelSpec spec;
    std::unique_ptr<Kernel> kernel;  // refers to the specification
    size_t outputs = 0;              // of the last layer

    LayerSpec affine_layer(const Doubles& weight, const Doubles& bias,
                           const Doubles& cancelled_magnitude) const {
        check(weight.ndim() == 2 && weight.shape(0) > 0,
              "invalid weights: expected a matrix with at least one row");
        LayerSpec layer;
        layer.outputs = int(weight.shape(0));
        layer.inputs = int(outputs);
        layer.weight = finite("weights", weight, {weight.shape(0), outputs});
        layer.bias = finite("a bias", bias, {weight.shape(0)});
        layer.cancelled_magnitude =
            finite("a cancelled magnitude", cancelled_magnitude, {weight.shape(0)});
        return layer;
    }

    ModelSpec& open() {
        check(!kernel, "invalid order of calls: the kernel is finished; make another one");
        return spec;
    }
    Kernel& made() const {
        check(kernel != nullptr, "invalid order of calls: call finish first");
        return *kernel;
    }

    bool has_real_axis() const {
        return std::any_of(spec.axes.begin(), spec.axes.end(),
                           [](const AxisSpec& axis) { return axis.real; });
    }

    People people(const Doubles& constants, const Doubles& magnitudes) const {
        const size_t neurons = size_t(spec.neurons);
        if (constants.ndim() != 2 || constants.shape(1) != neurons ||
            shape_of(magnitudes) != shape_of(constants))
            throw std::invalid_argument("invalid shape of constants or magnitudes: got " +
                                        text_of(shape_of(constants)) + " and " +
                                        text_of(shape_of(magnitudes)) + "; expected (people, " +
                                        std::to_string(neurons) + ")");
        check_no_nan("constants", constants);
        check_no_nan("magnitudes", magnitudes);
        return {constants.data(), magnitudes.data(), constants.shape(0)};
    }

    void check_ids(const Counts& assignment_ids) const {
        uint64_t total = 1;
        for (const AxisSpec& axis : spec.axes)
            if (!axis.real) total *= uint64_t(axis.values);
        for (size_t i = 0; i < assignment_ids.size(); ++i)
            check(assignment_ids.data()[i] < total, "invalid id: expected one of the lattice");
    }

    // Whether there are rows as `set_shared` describes them.
    bool reads(const Doubles& rows) const {
        made();
        return rows.ndim() == 2 && rows.shape(0) > 0 &&
               rows.shape(1) == size_t(spec.shared.width) && spec.shared.width > 0;
    }

    template <class Query> PyResults run(Query query) const {
        Kernel& with = made();
        Results results;
        {
            nb::gil_scoped_release released;
            results = query(with);
        }
        return PyResults(std::move(results));
    }
};

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Compiled bounds and scores over sensitive lattices; src/native documents them.";
    module.def("instruction_sets", &names_of_sets);
    module.def("allow_instructions", &allow_instructions);
    bind_exact(module);
    bind_bounded(module);
    bind_smooth(module);
    nb::class_<PyMeanVote>(module, "MeanVote");
    nb::class_<PyResults>(module, "Results")
        .def_ro("counts", &PyResults::counts)
        .def_ro("runtime_safe", &PyResults::runtime_safe)
        .def_ro("finished", &PyResults::finished)
        .def_ro("has_match", &PyResults::has_match)
        .def_ro("assignment_ids", &PyResults::assignment_ids)
        .def_ro("bounded_nodes", &PyResults::bounded_nodes)
        .def_ro("scored_points", &PyResults::scored_points)
        .def_ro("real_values", &PyResults::real_values)
        .def_ro("best_scores", &PyResults::best_scores)
        .def_ro("upper_bounds", &PyResults::upper_bounds)
        .def_ro("undecided_ids", &PyResults::undecided_ids);
    nb::class_<PyNodeBounds>(module, "NodeBounds")
        .def_ro("low", &PyNodeBounds::low)
        .def_ro("high", &PyNodeBounds::high)
        .def_ro("backward_low", &PyNodeBounds::backward_low)
        .def_ro("backward_high", &PyNodeBounds::backward_high)
        .def_ro("below", &PyNodeBounds::below)
        .def_ro("above", &PyNodeBounds::above)
        .def_ro("not_below", &PyNodeBounds::not_below)
        .def_ro("not_above", &PyNodeBounds::not_above)
        .def_ro("source_errors", &PyNodeBounds::source_errors)
        .def_ro("errors32", &PyNodeBounds::errors32)
        .def_ro("errors64", &PyNodeBounds::errors64)
        .def_ro("scores32", &PyNodeBounds::scores32)
        .def_ro("scores64", &PyNodeBounds::scores64);
    nb::class_<PyTree>(module, "Tree")
        .def_ro("order", &PyTree::order)
        .def_ro("begin", &PyTree::begin)
        .def_ro("end", &PyTree::end)
        .def_ro("left", &PyTree::left)
        .def_ro("right", &PyTree::right)
        .def_ro("center", &PyTree::center)
        .def_ro("generator", &PyTree::generator)
        .def_ro("rest", &PyTree::rest);
    nb::class_<PyKernel>(module, "Kernel")
        .def(nb::init<const Doubles&, const Doubles&, int>())
        .def("add_axis", &PyKernel::add_axis)
        .def("add_real_axis", &PyKernel::add_real_axis)
        .def("set_shared", &PyKernel::set_shared)
        .def("add_layer", &PyKernel::add_layer)
        .def("add_smooth_layer", &PyKernel::add_smooth_layer)
        .def("set_rule", &PyKernel::set_rule)
        .def("set_source", &PyKernel::set_source)
        .def("set_forms_from", &PyKernel::set_forms_from)
        .def("finish", &PyKernel::finish)
        .def("tally", &PyKernel::tally)
        .def("tally_listed", &PyKernel::tally_listed)
        .def("find", &PyKernel::find)
        .def("worst", &PyKernel::worst)
        .def("worst_real", &PyKernel::worst_real)
        .def("majority", &PyKernel::majority)
        .def("mean_vote", &PyKernel::mean_vote)
        .def("means", &PyKernel::means)
        .def("tree", &PyKernel::tree)
        .def("node_bounds", &PyKernel::node_bounds);
}

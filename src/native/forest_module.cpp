// Module: the Python binding of tree ensembles. It converts arrays and holds no policy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "forest.hpp"
#include "forest_rows.hpp"

namespace nb = nanobind;

namespace feta {
namespace forest {

namespace {

template <class T> using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

template <class T> std::vector<T> to_vector(const Array<T>& array) {
    return {array.data(), array.data() + array.size()};
}

// Integers as rows of two int64: the high and the low bits.
const Pair* pairs(const Array<int64_t>& array) {
    return reinterpret_cast<const Pair*>(array.data());
}

Wide wide(const Pair& pair) {
    return Wide((unsigned __int128)(pair.high) << 64 | uint64_t(pair.low));
}

std::vector<Wide> to_wide(const Array<int64_t>& array) {
    std::vector<Wide> numbers(array.size() / 2);
    for (size_t n = 0; n < numbers.size(); ++n) numbers[n] = wide(pairs(array)[n]);
    return numbers;
}

template <class T> nb::object array_of(std::vector<T>&& values, size_t rows, size_t columns) {
    auto* storage = new std::vector<T>(std::move(values));
    nb::capsule owner(storage,
                      [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    if (columns == 0) return nb::cast(nb::ndarray<nb::numpy, T>(storage->data(), {rows}, owner));
    return nb::cast(nb::ndarray<nb::numpy, T>(storage->data(), {rows, columns}, owner));
}

// One row per person; `undecided_ids` has only people with undecided counterparts.
struct PyForestResults {
    nb::object counts, runtime_safe, finished, has_match, assignment_ids, costs;
    nb::dict undecided_ids;

    explicit PyForestResults(Results&& from) {
        const size_t count = from.found.size();
        for (size_t row = 0; row < count; ++row)
            if (!from.candidates[row].empty()) {
                const size_t size = from.candidates[row].size();
                undecided_ids[nb::int_(row)] = array_of(std::move(from.candidates[row]), size, 0);
            }
        counts = array_of(std::move(from.counts), count, from.classes);
        runtime_safe = array_of(std::move(from.runtime_safe), count, 0);
        finished = array_of(std::move(from.finished), count, 0);
        has_match = array_of(std::move(from.found), count, 0);
        assignment_ids = array_of(std::move(from.assignment_id), count, 0);
        costs = array_of(std::move(from.cost), count, 0);
    }
};

struct PyForest {
    ForestSpec spec;
    std::unique_ptr<Kernel> kernel;

    Rows rows(const Array<double>& people) const {
        if (people.ndim() != 2 || people.shape(1) != size_t(spec.columns))
            throw std::invalid_argument("invalid shape of people: expected (people, " +
                                        std::to_string(spec.columns) + ")");
        return {people.data(), people.shape(0)};
    }
};

void add_nodes(PyForest& self, const Array<int32_t>& roots, const Array<uint8_t>& test,
               const Array<double>& cut, const Array<int32_t>& links, const Array<uint8_t>& missing,
               const Array<uint8_t>& members) {
    self.spec.roots = to_vector(roots);
    self.spec.members = to_vector(members);
    self.spec.nodes.resize(test.size());
    for (size_t n = 0; n < test.size(); ++n) {
        const int32_t* link = links.data() + 5 * n;  // source, extra, left, right, axis
        self.spec.nodes[n] = Node{
            cut.data()[n],        link[0],          link[1], link[2], link[3], int16_t(link[4]),
            Test(test.data()[n]), missing.data()[n]};
    }
}

void add_axis(PyForest& self, bool ordered, uint64_t stride, const Array<uint64_t>& sizes,
              const Array<uint64_t>& first, const Array<uint64_t>& masks) {
    Axis axis;
    axis.ordered = ordered;
    axis.stride = stride;
    axis.sizes = to_vector(sizes);
    axis.first = to_vector(first);
    axis.words = (sizes.size() + 63) / 64;
    axis.masks = to_vector(masks);
    self.spec.axes.push_back(std::move(axis));
}

// `links` are source, flag, start, left and right of each node.
ForestRows forest_rows(int64_t width, int64_t domains, const Array<int64_t>& roots,
                       const Array<uint8_t>& kind, const Array<double>& cut,
                       const Array<int64_t>& links, const Array<uint8_t>& missing,
                       const Array<uint8_t>& members) {
    const auto count = int64_t(kind.size());
    ForestRows rows;
    rows.width = width;
    rows.domains = domains;
    rows.roots = to_vector(roots);
    rows.members = to_vector(members);
    for (int64_t n = 0; n < count; ++n) {
        const int64_t* link = links.data() + 5 * n;
        const RowNode node{cut.data()[n], link[0], link[1],        link[2],
                           link[3],       link[4], kind.data()[n], missing.data()[n]};
        const bool inner = node.kind != ForestRows::leaf, tests = node.kind == ForestRows::number;
        if (inner && (node.left <= n || node.left >= count || node.right <= n ||
                      node.right >= count || node.source < 0 ||
                      node.source >= (tests ? width : domains) || (tests && node.flag >= width)))
            throw std::invalid_argument("invalid node of a tree");
        rows.nodes.push_back(node);
    }
    for (const int64_t root : rows.roots)
        if (root < 0 || root >= count) throw std::invalid_argument("invalid root of a tree");
    return rows;
}

nb::object leaves_of(const ForestRows& self, const Array<double>& people,
                     const Array<int64_t>& indices) {
    const size_t count = people.shape(0), trees = self.roots.size();
    if (people.ndim() != 2 || indices.ndim() != 2 || people.shape(1) != size_t(self.width) ||
        indices.shape(0) != count || indices.shape(1) != size_t(self.domains))
        throw std::invalid_argument("invalid people: expected one row per person");
    std::vector<int64_t> leaves(count * trees);
    bool valid = true;
    {
        nb::gil_scoped_release released;
        for (size_t person = 0; person < count && valid; ++person)
            valid = self.leaves_of(people.data() + person * size_t(self.width),
                                   indices.data() + person * size_t(self.domains),
                                   leaves.data() + person * trees);
    }
    if (!valid) throw std::invalid_argument("invalid value of a domain");
    auto* storage = new std::vector<int64_t>(std::move(leaves));
    nb::capsule owner(storage, [](void* pointer) noexcept {
        delete static_cast<std::vector<int64_t>*>(pointer);
    });
    return nb::cast(nb::ndarray<nb::numpy, int64_t>(storage->data(), {count, trees}, owner));
}

}  // namespace

}  // namespace forest
}  // namespace feta

NB_MODULE(_forest, module) {
    using namespace feta;
    using namespace feta::forest;
    module.doc() =
        "Exact sums of tree ensembles over sensitive lattices; src/native documents them.";
    nb::class_<PyForestResults>(module, "ForestResults")
        .def_ro("counts", &PyForestResults::counts)
        .def_ro("runtime_safe", &PyForestResults::runtime_safe)
        .def_ro("finished", &PyForestResults::finished)
        .def_ro("has_match", &PyForestResults::has_match)
        .def_ro("assignment_ids", &PyForestResults::assignment_ids)
        .def_ro("costs", &PyForestResults::costs)
        .def_ro("undecided_ids", &PyForestResults::undecided_ids);
    nb::class_<ForestRows>(module, "ForestRows")
        .def("__init__",
             [](ForestRows* self, int64_t width, int64_t domains, const Array<int64_t>& roots,
                const Array<uint8_t>& kind, const Array<double>& cut, const Array<int64_t>& links,
                const Array<uint8_t>& missing, const Array<uint8_t>& members) {
                 new (self) ForestRows(
                     forest_rows(width, domains, roots, kind, cut, links, missing, members));
             })
        .def("leaves", &leaves_of);
    nb::class_<PyForest>(module, "ForestKernel")
        .def("__init__",
             [](PyForest* self, int columns, bool is_wide) {
                 new (self) PyForest();
                 self->spec.columns = columns;
                 self->spec.wide = is_wide;
             })
        .def("add_nodes", &add_nodes)
        .def("add_axis", &add_axis)
        .def("add_domain",
             [](PyForest& self, int column, int width, int flag, const Array<double>& numbers) {
                 self.spec.domains.push_back({column, width, flag, to_vector(numbers)});
             })
        .def("set_leaves",
             [](PyForest& self, const Array<int64_t>& leaves, const Array<int64_t>& base,
                double unit) {
                 self.spec.leaves = to_wide(leaves);
                 self.spec.base = to_wide(base);
                 self.spec.outputs = int(self.spec.base.size());
                 self.spec.unit = unit;
             })
        .def("set_replay",
             [](PyForest& self, bool single, bool divide, const Array<double>& terms,
                const Array<double>& sizes, const Array<double>& start,
                const Array<double>& base_sizes, const Array<double>& directions,
                double denominator, double relative_error) {
                 self.spec.sums = int(start.size());
                 self.spec.replay = Replay{single,
                                           divide,
                                           to_vector(terms),
                                           to_vector(sizes),
                                           to_vector(start),
                                           to_vector(base_sizes),
                                           to_vector(directions),
                                           denominator,
                                           relative_error};
             })
        .def("set_rule",
             [](PyForest& self, int kind, double value, bool above, int chosen, int classes,
                const Array<int64_t>& bounds, double source_error) {
                 self.spec.rule =
                     RuleSpec{RuleKind(kind), value, above, chosen, self.spec.outputs, classes};
                 const std::vector<Wide> numbers = to_wide(bounds);
                 self.spec.least_above = numbers[0];
                 self.spec.surely_below = numbers[1];
                 self.spec.surely_above = numbers[2];
                 self.spec.sure_gap = numbers[3];
                 self.spec.source_error = source_error;
             })
        .def("set_limits",
             [](PyForest& self, const Array<int32_t>& columns, const Array<double>& low,
                const Array<double>& high, const Array<uint8_t>& integer,
                const Array<int32_t>& groups) {
                 for (size_t c = 0; c < columns.size(); ++c)
                     self.spec.limits.push_back({columns.data()[c], groups.data()[c], low.data()[c],
                                                 high.data()[c], bool(integer.data()[c])});
             })
        // Return the majority of each row, for two classes as booleans, otherwise as classes.
        // Return None if a row may lie outside the space.
        .def("majority",
             [](PyForest& self, const Array<double>& people, bool of_two, bool ties_to_last,
                int threads) -> nb::object {
                 const Rows rows = self.rows(people);
                 std::vector<int32_t> winners(rows.count, 0);
                 bool valid;
                 {
                     nb::gil_scoped_release released;
                     valid = self.kernel->majority(rows, ties_to_last, threads, winners.data());
                 }
                 if (!valid) return nb::none();
                 if (!of_two)
                     return array_of(std::vector<int64_t>(winners.begin(), winners.end()),
                                     rows.count, 0);
                 auto* favorable = new bool[rows.count];
                 nb::capsule owner(favorable, [](void* pointer) noexcept {
                     delete[] static_cast<bool*>(pointer);
                 });
                 std::copy(winners.begin(), winners.end(), favorable);
                 return nb::cast(nb::ndarray<nb::numpy, bool>(favorable, {rows.count}, owner));
             })
        .def("finish",
             [](PyForest& self, size_t max_set_bytes) {
                 self.spec.max_set_bytes = max_set_bytes;
                 self.kernel = make(self.spec);
             })
        .def("tally",
             [](PyForest& self, const Array<double>& people, bool majority, double seconds,
                uint64_t evaluations, int threads) {
                 const Rows rows = self.rows(people);
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results = self.kernel->tally(rows, nullptr, majority,
                                                  {seconds, evaluations, threads});
                 }
                 return PyForestResults(std::move(results));
             })
        .def("tally_listed",
             [](PyForest& self, const Array<double>& people, const Array<int32_t>& groups,
                const Array<uint64_t>& votes, double seconds, uint64_t evaluations, int threads) {
                 const Rows rows = self.rows(people);
                 const Votes listed{to_vector(groups), to_vector(votes)};
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results =
                         self.kernel->tally(rows, &listed, false, {seconds, evaluations, threads});
                 }
                 return PyForestResults(std::move(results));
             })
        .def("find",
             [](PyForest& self, const Array<double>& people, const Array<int32_t>& decisions,
                const Array<int64_t>& bands, const Array<double>& centers, double half,
                double seconds, uint64_t evaluations) {
                 const Rows rows = self.rows(people);
                 Results results;
                 {
                     nb::gil_scoped_release released;
                     results = self.kernel->find(
                         rows, {decisions.data(), pairs(bands), centers.data(), half},
                         {seconds, evaluations, 1});
                 }
                 return PyForestResults(std::move(results));
             })
        .def("worst", [](PyForest& self, const Array<double>& people,
                         const Array<double>& directions, const Array<int32_t>& kind,
                         const Array<int64_t>& low, const Array<int64_t>& high,
                         const Array<int64_t>& levels, const Array<int64_t>& floors, bool smallest,
                         double seconds, uint64_t evaluations, int threads) {
            const Rows rows = self.rows(people);
            const Objectives objectives{int(directions.shape(1)),
                                        directions.data(),
                                        kind.data(),
                                        pairs(low),
                                        pairs(high),
                                        pairs(levels),
                                        pairs(floors),
                                        smallest};
            Results results;
            {
                nb::gil_scoped_release released;
                results = self.kernel->worst(rows, objectives, {seconds, evaluations, threads});
            }
            return PyForestResults(std::move(results));
        });
}

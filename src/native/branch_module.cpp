// The Python module of proofs about boxes of people.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "branch.hpp"

namespace nb = nanobind;

template class std::vector<feta::BranchBox>;
template class std::vector<feta::BranchHard>;

namespace feta {

Branch::~Branch() = default;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t largest = size_t(1) << 24;

void require(bool valid, const char* what) {
    if (!valid) throw std::invalid_argument(what);
}

std::vector<double> copied(const double* from, size_t count) {
    for (size_t i = 0; i < count; ++i)
        require(std::isfinite(from[i]), "invalid numbers: expected finite ones");
    return {from, from + count};
}
std::vector<double> copied(const Vector& from) { return copied(from.data(), from.size()); }
std::vector<double> copied(const Matrix& from) { return copied(from.data(), from.size()); }

// A problem, and the search once it has started.
class BranchHandle {
  public:
    BranchHandle(const Vector& constant, const Matrix& combinations, double threshold) {
        spec.constant = copied(constant);
        require(combinations.shape(0) > 0 && combinations.shape(1) == spec.neurons(),
                "invalid combinations: expected one column per neuron");
        spec.combinations = combinations.shape(0);
        spec.combination_rows = copied(combinations);
        spec.threshold = threshold;
    }

    void add_axis(int kind, const Matrix& rows, double start, double low, double high,
                  const Integers& ends) {
        building();
        require(kind >= 0 && kind <= 2 && rows.shape(1) == spec.neurons() && low <= high,
                "invalid axis: expected a kind, one column per neuron and a range");
        BranchAxis axis;
        axis.kind = BranchAxis::Kind(kind);
        axis.rows = copied(rows);
        axis.start = start;
        axis.low = low;
        axis.high = high;
        const size_t count = ends.size() ? ends.size() - 1 : 0;
        const bool fits = kind == 1
                              ? ends.size() == 0
                              : count > 0 && count < largest && low >= 0 && high < double(count) &&
                                    low == std::floor(low) && high == std::floor(high);
        require(fits && rows.shape(0) == (kind == 2 ? count : 1),
                "invalid axis: expected weights of all values");
        axis.ends.assign(ends.data(), ends.data() + ends.size());
        axis.next.assign(count + 1, int32_t(largest));
        axis.previous.assign(count, -1);
        for (size_t v = count; v-- > 0;) {
            require(axis.ends[v] >= 0 && axis.ends[v] <= axis.ends[v + 1],
                    "invalid weights: expected ascending sums");
            axis.next[v] = axis.ends[v + 1] > axis.ends[v] ? int32_t(v) : axis.next[v + 1];
        }
        for (size_t v = 0; v < count; ++v)
            axis.previous[v] =
                axis.next[v] == int32_t(v) ? int32_t(v) : (v ? axis.previous[v - 1] : -1);
        if (count) {
            const auto first = size_t(low), last = size_t(high);
            require(axis.next[first] == int32_t(first) && axis.next[last] == int32_t(last),
                    "invalid axis: expected a weight of the first and the last value");
            for (size_t v = first; v <= last; ++v)
                axis.uniform &=
                    axis.ends[v + 1] - axis.ends[v] == axis.ends[first + 1] - axis.ends[first];
        }
        spec.axes.push_back(std::move(axis));
    }

    void add_layer(const Matrix& breaks, const Matrix& slopes, const Matrix& intercepts, bool relu,
                   const Matrix& weight, const Vector& bias) {
        building();
        const size_t neurons = spec.layers.empty() ? spec.neurons() : spec.layers.back().outputs;
        const size_t width = slopes.shape(1), pieces = slopes.shape(0);
        require(pieces > 0 && breaks.shape(0) + 1 == pieces && intercepts.shape(0) == pieces &&
                    (width == 1 || width == neurons) && intercepts.shape(1) == width &&
                    breaks.shape(1) == width,
                "invalid activation: expected one piece more than breaks");
        require(weight.shape(1) == neurons && weight.shape(0) == bias.size() && bias.size() > 0,
                "invalid layer: expected one column per neuron");
        spec.activations.push_back(
            {relu, pieces, width, copied(breaks), copied(slopes), copied(intercepts)});
        spec.layers.push_back({neurons, bias.size(), copied(weight), copied(bias)});
    }

    void add_error(const Vector& sizes, const Vector& errors) {
        building();
        spec.sizes.push_back(copied(sizes));
        spec.errors.push_back(copied(errors));
    }

    void start(double few, int least_bins, int most_bins, double usual_bins, double joint_above,
               bool simd) {
        building();
        require(spec.axes.size() <= 256 && least_bins >= 2 && most_bins <= least_bins + 7 &&
                    most_bins <= 20,
                "invalid options");
        require(spec.sizes.size() == spec.layers.size() + 1, "invalid errors: one per layer");
        for (size_t k = 0; k < spec.sizes.size(); ++k) {
            const size_t n = k ? spec.layers[k - 1].outputs : spec.neurons();
            require(spec.sizes[k].size() == n && spec.errors[k].size() == n,
                    "invalid errors: expected one number per neuron");
        }
        require(spec.sizes.back().size() == 1, "invalid layers: expected one score");
        const BranchOptions options{few, least_bins, most_bins, usual_bins, joint_above};
#ifdef FETA_HAVE_AVX2
        if (simd && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
            search = make_branch_avx2(spec, options);
            return;
        }
#endif
        (void)simd;
        search = make_branch_portable(spec, options);
    }

    Branch& started() const {
        if (!search) throw std::logic_error("the search has not started");
        return *search;
    }

    const BranchSpec& problem() const { return spec; }

  private:
    BranchSpec spec;
    std::unique_ptr<Branch> search;

    void building() const {
        if (search) throw std::logic_error("the search has started already");
    }
};

template <class T> nb::object array(std::vector<T> values, size_t rows, size_t columns) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned,
                      [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(owned->data(), {rows, columns}, owner));
}

nb::object boxes_array(const std::vector<BranchBox>& boxes, size_t width, bool low) {
    std::vector<double> values;
    for (const BranchBox& box : boxes) {
        const auto& from = low ? box.low : box.high;
        values.insert(values.end(), from.begin(), from.end());
    }
    return array(std::move(values), boxes.size(), width);
}

nb::tuple boxes_tuple(const std::vector<BranchBox>& boxes, size_t width) {
    return nb::make_tuple(boxes_array(boxes, width, true), boxes_array(boxes, width, false));
}

nb::tuple words(BranchSum sum) { return nb::make_tuple(sum.high, sum.low); }

BranchBox checked_box(const BranchSpec& spec, const Vector& low, const Vector& high) {
    require(low.size() == spec.axes.size() && high.size() == spec.axes.size(),
            "invalid box: expected one range per axis");
    for (size_t a = 0; a < spec.axes.size(); ++a) {
        const BranchAxis& axis = spec.axes[a];
        const double from = low.data()[a], to = high.data()[a];
        bool inside = from >= axis.low && from <= to && to <= axis.high;
        if (inside && axis.kind != BranchAxis::real)
            inside = from == std::floor(from) && to == std::floor(to) &&
                     axis.next[size_t(from)] == int32_t(from) &&
                     axis.next[size_t(to)] == int32_t(to);
        require(inside, "invalid box: expected ranges whose ends have a weight");
    }
    return {copied(low), copied(high)};
}

}  // namespace
}  // namespace feta

NB_MODULE(_branch, module) {
    using namespace feta;
    nb::class_<BranchHandle>(module, "Branch")
        .def(nb::init<const Vector&, const Matrix&, double>())
        .def("add_axis", &BranchHandle::add_axis)
        .def("add_layer", &BranchHandle::add_layer)
        .def("add_error", &BranchHandle::add_error)
        .def("start", &BranchHandle::start, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "step", [](const BranchHandle& self, double seconds) { self.started().step(seconds); },
            nb::call_guard<nb::gil_scoped_release>())
        .def("done", [](const BranchHandle& self) { return self.started().done(); })
        .def("boxes", [](const BranchHandle& self) { return self.started().boxes(); })
        .def("not_fair", [](const BranchHandle& self) { return words(self.started().not_fair()); })
        .def("unfair", [](const BranchHandle& self) { return words(self.started().unfair()); })
        .def("tree",
             [](const BranchHandle& self) {
                 std::vector<int32_t> rows;
                 for (const BranchNode& node : self.started().nodes())
                     rows.insert(rows.end(), {node.axis, node.code, node.child});
                 const size_t count = rows.size() / 3;
                 return array(std::move(rows), count, 3);
             })
        .def("draw",
             [](const BranchHandle& self, const Vector& uniform) {
                 return boxes_tuple(self.started().draw(uniform.data(), uniform.size()),
                                    self.problem().axes.size());
             })
        .def("hard",
             [](const BranchHandle& self) {
                 std::vector<BranchBox> boxes;
                 nb::list nodes;
                 for (const BranchHard& each : self.started().take_hard()) {
                     nodes.append(each.node);
                     boxes.push_back(each.box);
                 }
                 return nb::make_tuple(nodes, boxes_tuple(boxes, self.problem().axes.size()));
             })
        .def("settle",
             [](const BranchHandle& self, int32_t node, double fair, double unfair) {
                 require(fair >= 0 && unfair >= 0 && fair + unfair <= 1, "invalid shares");
                 self.started().settle(node, {fair, unfair});
             })
        .def("witness",
             [](const BranchHandle& self) {
                 std::vector<BranchBox> boxes;
                 if (const BranchBox* box = self.started().witness()) boxes.push_back(*box);
                 return boxes_tuple(boxes, self.problem().axes.size());
             })
        .def("examine", [](const BranchHandle& self, const Vector& low, const Vector& high,
                           bool each, int bins) {
            require(bins >= 4 && bins <= 1 << 20, "invalid number of bins");
            const BranchBox box = checked_box(self.problem(), low, high);
            const BranchShares shares = self.started().examine(box, each, bins);
            return nb::make_tuple(shares.fair, shares.unfair);
        });
}

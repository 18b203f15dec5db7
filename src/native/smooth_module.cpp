#include "smooth_module.hpp"

#include "binding.hpp"
#include "spec.hpp"

namespace nb = nanobind;

namespace feta {

namespace {

using namespace binding;

// Set the range, the rows of both formats and the lines beyond, as spec.hpp describes them.
void set_cells(SmoothSpec& to, const Doubles& range, const Doubles& single, const Doubles& doubles,
               const Doubles& tails) {
    const std::vector<double> ends = finite("a range", range, {5}),
                              lines = finite("a tail", tails, {2, 2});
    const auto rows = [](const Doubles& flat) { return flat.ndim() ? flat.shape(0) : 0; };
    const auto check_range = [](double low, double high, int cells, size_t n_rows) {
        check(n_rows > 0 && (high - low) * cells == double(n_rows),
              "invalid cells: expected one row of coefficients for each cell of the range");
    };
    to.inner = ends[0];
    to.low = ends[1];
    to.high = ends[2];
    to.single_low = ends[3];
    to.single_high = ends[4];
    check_range(to.low, to.high, SmoothSpec::double_cells, rows(doubles));
    check_range(to.single_low, to.single_high, SmoothSpec::single_cells, rows(single));
    to.single = finite("coefficients", single, {rows(single), SmoothSpec::single_terms});
    to.doubles = finite("coefficients", doubles, {rows(doubles), SmoothSpec::double_terms});
    to.tail_slopes = {lines[0], lines[2]};
    to.tail_intercepts = {lines[1], lines[3]};
    to.kind = SmoothSpec::table;
}

void set_windows(SmoothSpec& to, const Doubles& windows, double reach, double first_slope,
                 double slope_step) {
    const size_t count = windows.ndim() ? windows.shape(0) : 0;
    check_shape("the windows", windows, {count, SmoothSpec::window_terms});
    check_no_nan("windows", windows);
    check(count > 0 && reach >= 0 && slope_step > 0,
          "invalid windows: expected a row for each slope");
    to.windows = to_vector(windows);
    to.reach = reach;
    to.first_slope = first_slope;
    to.slope_step = slope_step;
    if (to.kind == SmoothSpec::none) to.kind = SmoothSpec::softsign;
}

}  // namespace

void bind_smooth(nb::module_& module) {
    nb::class_<SmoothSpec>(module, "Smooth")
        .def(nb::init<>())
        .def("set_cells", &set_cells)
        .def("set_windows", &set_windows)
        .def_rw("single_error", &SmoothSpec::single_error)
        .def_rw("double_error", &SmoothSpec::double_error)
        .def_rw("window_error", &SmoothSpec::window_error)
        .def_rw("source_error", &SmoothSpec::source_error)
        .def_rw("steepest", &SmoothSpec::steepest)
        .def_rw("lift", &SmoothSpec::lift)
        .def_rw("largest_term", &SmoothSpec::largest_term);
}

}  // namespace feta

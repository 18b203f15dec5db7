#include "smooth_module.hpp"

#include "binding.hpp"
#include "spec.hpp"

namespace nb = nanobind;

namespace feta {

namespace {

using namespace binding;

// Set the rows of both formats, as spec.hpp describes them.
void set_cells(SmoothSpec& to, double inner, int first_single, int first_double,
               const Doubles& single, const Doubles& doubles) {
    const auto rows = [](const Doubles& flat) { return flat.ndim() ? flat.shape(0) : 0; };
    check(std::isfinite(inner) && rows(single) > 0 && rows(doubles) > 0,
          "invalid cells: expected a finite factor, and coefficients in both formats");
    to.inner = inner;
    to.first_single = first_single;
    to.first_double = first_double;
    to.single = finite("coefficients", single, {rows(single), SmoothSpec::single_terms});
    to.doubles = finite("coefficients", doubles, {rows(doubles), SmoothSpec::double_terms});
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

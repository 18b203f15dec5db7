// The Python binding of smooth activations.
#pragma once
#include <nanobind/nanobind.h>

namespace feta {

void bind_smooth(nanobind::module_& module);

}  // namespace feta

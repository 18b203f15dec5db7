// The Python binding of exact scores, added to the module of networks.
#pragma once

#include <nanobind/nanobind.h>

namespace feta {

void bind_exact(nanobind::module_& module);

}  // namespace feta

// The Python binding of scores with error bounds, added to the module of networks.
#pragma once

#include <nanobind/nanobind.h>

namespace feta {

void bind_bounded(nanobind::module_& module);

}  // namespace feta

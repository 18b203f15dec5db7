#include "kernel.hpp"

namespace feta {

Results::Results() = default;
Results::Results(Results&&) noexcept = default;
Results& Results::operator=(Results&&) noexcept = default;
Results::~Results() = default;

NodeBounds::NodeBounds() = default;
NodeBounds::NodeBounds(NodeBounds&&) noexcept = default;
NodeBounds& NodeBounds::operator=(NodeBounds&&) noexcept = default;
NodeBounds::~NodeBounds() = default;

MeanVote::~MeanVote() = default;
Kernel::~Kernel() = default;

}  // namespace feta

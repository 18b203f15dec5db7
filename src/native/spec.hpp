// Spec: a model as Python hands it over, in float64; the kernel makes its own copies of it.
#pragma once
#include <cstdint>
#include <vector>

namespace feta {

// A piecewise-linear activation; arrays are (pieces, width), width 1 or the number of neurons.
struct ActivationSpec {
    int pieces = 1, width = 1;
    std::vector<double> breaks, slopes, intercepts;
};

struct LayerSpec {
    int inputs = 0, outputs = 0;
    std::vector<double> weight, bias, cancelled_magnitude;  // weight (outputs, inputs)
    ActivationSpec activation;                              // stands before the weights
};

// A sensitive attribute: each value's terms in the first layer. A real-valued one has slopes instead,
// and its values are pieces of its range.
struct AxisSpec {
    int values = 0;
    std::vector<double> terms, magnitudes;  // (values, neurons)
    bool real = false;
    double low = 0, high = 0;
    std::vector<double> slopes;  // (neurons)
};

enum class RuleKind : int32_t { threshold = 0, argmax = 1, one_vs_rest = 2, tolerance = 3 };

struct RuleSpec {
    RuleKind kind = RuleKind::threshold;
    double value = 0;   // threshold
    bool above = true;  // scores above it are favorable
    int chosen = 0;     // one against the rest
    int outputs = 1, classes = 2;
};

// The columns that counterparts share, where the first layer reads them by slopes alone: what a row
// of people must hold there, and what it adds to the neurons.
struct SharedSpec {
    int width = 0;  // columns of a whole row
    std::vector<int32_t> columns;
    std::vector<double> slopes;     // (columns, neurons)
    std::vector<double> low, high;  // by column
    std::vector<uint8_t> integer;   // whole numbers only
    std::vector<int32_t> group;     // which category a column belongs to, −1: none
};

struct ModelSpec {
    int neurons = 0, columns = 0;  // first layer
    std::vector<double> bias, cancelled_magnitude;
    SharedSpec shared;
    std::vector<AxisSpec> axes;
    std::vector<LayerSpec> layers;
    RuleSpec rule;
    double source_unit = 0x1p-24, source_tiny = 0x1p-125, source_huge = 8e37;
    int source_extra_roundings = 8;
    double source_error = 0;  // a sigmoid's doubt
};

}  // namespace feta

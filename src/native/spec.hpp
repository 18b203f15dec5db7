// Spec: a model in float64, as Python passes it. The kernel converts it to its own formats.
//
// A `cancelled_magnitude` is the magnitude of source terms that cancel in the bias, where a scaling
// was merged into the layer. The source rounds these terms, so its error bound includes them.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace feta {

// A smooth activation, see smooth.hpp: f(x) = P(inner · x). Cells begin at multiples of their width;
// the first and the last row are lines for everything beyond. A row of `windows` is for one slope: x
// and value of a lowest and of a highest point of f(x) − slope · x, at most `reach` from their x.
struct SmoothSpec {
    enum Kind : int32_t { none = 0, table = 1, softsign = 2 };
    static constexpr int single_terms = 4, double_terms = 12, window_terms = 4;
    static constexpr int single_cells = 16, double_cells = 8;  // per unit of inner · x
    Kind kind = none;
    double inner = 1;
    int first_single = 0, first_double = 0;        // index of the first row
    std::vector<double> single, doubles, windows;  // rows of the terms above
    double reach = 0, first_slope = 0, slope_step = 1;
    // Errors of the values, of the claim that windows contain all extremes, and of the source.
    double single_error = 0, double_error = 0, window_error = 0, source_error = 0;
    double steepest = 1, lift = 0, largest_term = 0;  // |f(x)| is at most steepest · |x| + lift
    std::vector<uint8_t> on;                          // (1 or neurons): others pass unchanged
};

// A piecewise-linear activation, or a smooth one; arrays are (pieces, width), width 1 or the number
// of neurons.
struct ActivationSpec {
    int pieces = 1, width = 1;
    std::vector<double> breaks, slopes, intercepts;
    SmoothSpec smooth;
};

struct LayerSpec {
    int inputs = 0, outputs = 0;
    std::vector<double> weight, bias, cancelled_magnitude;  // weight (outputs, inputs)
    ActivationSpec activation;                              // applied before the weights
};

// A sensitive attribute: the terms of each value in the first layer, and the sums of their absolute
// parts. A real-valued attribute has slopes instead, and its values are pieces of its range.
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
    double value = 0;   // the threshold
    bool above = true;  // scores above the threshold are favorable
    int chosen = 0;     // the class of one_vs_rest
    int outputs = 1, classes = 2;
};

// The columns that counterparts share, if the first layer reads all of them by slopes: the domain
// of each column, and its contribution to the neurons.
struct SharedSpec {
    int width = 0;  // columns of a row, shared or not
    std::vector<int32_t> columns;
    std::vector<double> slopes;     // (columns, neurons)
    std::vector<double> low, high;  // by column
    std::vector<uint8_t> integer;   // whether only integers are valid
    std::vector<int32_t> group;     // one-hot group of the column; −1: none
};

struct ModelSpec {
    int neurons = 0, columns = 0;  // of the first layer
    std::vector<double> bias, cancelled_magnitude;
    SharedSpec shared;
    std::vector<AxisSpec> axes;
    std::vector<LayerSpec> layers;
    RuleSpec rule;
    // Arithmetic of the source; it determines whether a decision is runtime-safe.
    double source_unit = 0x1p-24, source_tiny = 0x1p-125, source_huge = 8e37;
    int source_extra_roundings = 8;
    double source_error = 0;  // further error at the threshold, of a sigmoid; inf: overflow
    uint64_t forms_from = 0;  // counterparts from which majorities are counted by linear forms
};

}  // namespace feta

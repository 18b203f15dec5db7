// Network: the layers and the trees of the sensitive attributes in one number format.
#pragma once
#include <algorithm>
#include <type_traits>

#include "arithmetic.hpp"
#include "smooth.hpp"
#include "tree.hpp"
#include "vector.hpp"

namespace feta {
namespace FETA_ISA {

// A piecewise-linear activation, or a smooth one. Per neuron, `steepest` bounds |slope|, and `offset`
// bounds |intercept| and the effect of a rounded break.
template <class T> struct Activation {
    int pieces = 1, width = 0;  // width: neurons, padded
    bool relu = false, identity = false;
    Array<T> breaks, slopes, intercepts, steepest, offset;  // (pieces, width); last two (width)
    bool rounds = false;                                    // evaluating it may round
    Smooth<T> smooth;                                       // instead of pieces, if used

    void make(const ActivationSpec& from, int neurons) {
        pieces = from.pieces;
        width = padded<T>(neurons);
        if (from.smooth.kind != SmoothSpec::none) return make_smooth(from.smooth, neurons);
        const auto padded_rows = [&](const std::vector<double>& flat, int rows) {
            Array<T> out(size_t(std::max(rows, 0)) * width, T(0));
            for (int r = 0; r < rows; ++r)
                for (int n = 0; n < neurons; ++n)
                    out[size_t(r) * width + n] =
                        T(flat[size_t(r) * from.width + (from.width > 1 ? n : 0)]);
            return out;
        };
        breaks = padded_rows(from.breaks, pieces - 1);
        slopes = padded_rows(from.slopes, pieces);
        intercepts = padded_rows(from.intercepts, pieces);
        steepest.assign(width, T(0));
        offset.assign(width, T(0));
        relu = pieces == 2;
        identity = pieces == 1;
        // Compare and bound the float64 values: one that is rounded to 0 in format T is not 0.
        const size_t stride = size_t(from.width);
        const auto source = [&](int p, int n) {
            return size_t(p) * stride + (stride > 1 ? size_t(n) : 0);
        };
        for (int p = 0; p < pieces; ++p)
            for (int n = 0; n < neurons; ++n) {
                const double slope = from.slopes[source(p, n)],
                             shift = from.intercepts[source(p, n)];
                steepest[n] = std::max(steepest[n], bound_of(slope));
                offset[n] = std::max(offset[n], bound_of(shift));
                relu &= slope == p && shift == 0;
                identity &= slope == 1 && shift == 0;
                rounds |= !is_copied(slope) || shift != 0;
            }
        for (int p = 0; p + 1 < pieces; ++p)
            for (int n = 0; n < neurons; ++n) {
                const double at = from.breaks[source(p, n)];
                relu &= at == 0;
                // A break is rounded to the format, which shifts the kink.
                rounds |= at != 0;
                const double shifted = 2.0 * double(steepest[n]) * double(bound_of(at));
                offset[n] = std::max(offset[n], T(shifted * to_float32));
            }
    }

    void make_smooth(const SmoothSpec& from, int neurons) {
        smooth.make(from, neurons);
        pieces = 0;
        rounds = true;
        steepest.assign(width, T(1));
        offset.assign(width, T(0));
        for (int n = 0; n < neurons; ++n)
            if (smooth.applies(n)) {
                steepest[n] = bound_of(from.steepest);
                offset[n] = bound_of(from.lift + 1);  // room for numbers near 1
            }
    }

    // Return whether a product with the slope is exact.
    static bool is_copied(double slope) { return slope == 0 || slope == 1 || slope == -1; }

    // Bound a number that is rounded to the format: a unit of the bound covers the rounding, also of
    // a number below the smallest normal one.
    static T bound_of(double number) {
        const double size = std::abs(number);
        return T(is_copied(size) ? size : size * to_float32 + underflow_floor);
    }

    // Return the activation of one neuron at z, per lane.
    Vec<T> at(Vec<T> z, int neuron) const {
        if (smooth.used()) return smooth.applies(neuron) ? smooth.at(z) : z;
        Vec<T> out = slopes[neuron] * z + intercepts[neuron];
        for (int p = 1; p < pieces; ++p) {
            const size_t index = size_t(p) * width + neuron;
            const Vec<T> piece = slopes[index] * z + intercepts[index];
            out = select<T>(z >= broadcast(breaks[index - width]), piece, out);
        }
        return out;
    }
};

// One affine layer after its activation: W · activation(x) + b.
template <class T> struct Layer {
    int inputs = 0, outputs = 0, width = 0;  // width: outputs, padded
    Activation<T> activation;
    Array<T> panels, magnitude_panels;      // (panels, inputs, panel_width): W transposed, and |W|
    Array<T> rows;                          // (outputs, padded inputs): W
    Array<T> bias, norms;                   // (width): norms are Σ|W| of each output, rounded up
    std::vector<double> magnitudes64;       // (inputs, width): |W| + underflow_floor
    std::vector<double> bias_magnitudes64;  // (width): |b| + cancelled_magnitude

    void make(const LayerSpec& from) {
        inputs = from.inputs;
        outputs = from.outputs;
        width = padded<T>(outputs);
        activation.make(from.activation, inputs);
        const int n_panels = (outputs + panel_width - 1) / panel_width;
        panels.assign(size_t(n_panels) * inputs * panel_width, T(0));
        magnitude_panels.assign(panels.size(), T(0));
        magnitudes64.assign(size_t(inputs) * width, 0.0);
        const int inputs_width = padded<T>(inputs);
        rows.assign(size_t(outputs) * inputs_width, T(0));
        norms.assign(width, T(0));
        bias.assign(width, T(0));
        bias_magnitudes64.assign(width, 0.0);
        for (int o = 0; o < outputs; ++o) {
            bias[o] = T(from.bias[o]);
            bias_magnitudes64[o] = std::abs(from.bias[o]) + from.cancelled_magnitude[o];
            double norm = 0;
            for (int i = 0; i < inputs; ++i) {
                const double w = from.weight[size_t(o) * inputs + i];
                norm += std::abs(w) + underflow_floor;
                rows[size_t(o) * inputs_width + i] = T(w);
                panels[panel_index(i, o)] = T(w);
                magnitude_panels[panel_index(i, o)] = T(std::abs(w));
                magnitudes64[size_t(i) * width + o] = std::abs(w) + underflow_floor;
            }
            norms[o] = T(norm * to_float32);
        }
    }

    // Weights are stored for groups of outputs that are computed together, so that they are read
    // from consecutive memory.
    static constexpr int panel_width = 8;
    size_t panel_index(int input, int output) const {
        return (size_t(output / panel_width) * inputs + input) * panel_width + output % panel_width;
    }
};

// The tree of one sensitive attribute; see tree.hpp.
template <class T> struct AxisTree {
    int values = 0, nodes = 0;
    bool real = false;
    Array<T> terms, ordered;           // (values, width): by value, and in leaf order
    Array<T> center, generator, rest;  // (nodes, width)
    std::vector<double> weight;        // (nodes): expected gain of a split
    std::vector<int32_t> order, begin, end, left, right;

    void make(const AxisSpec& axis, const Tree& from) {
        const int neurons = from.neurons, width = padded<T>(neurons);
        values = axis.values;
        real = axis.real;
        nodes = from.nodes();
        const auto padded_rows = [&](const std::vector<double>& flat, int rows) {
            Array<T> out(size_t(rows) * width, T(0));
            for (int r = 0; r < rows; ++r)
                for (int n = 0; n < neurons; ++n)
                    out[size_t(r) * width + n] = T(flat[size_t(r) * neurons + n]);
            return out;
        };
        if constexpr (std::is_same_v<T, float>) {  // nodes are bounded in float32 only
            center = padded_rows(from.center, nodes);
            generator = padded_rows(from.generator, nodes);
            rest.assign(size_t(nodes) * width, T(0));
            for (int r = 0; r < nodes; ++r)
                for (int n = 0; n < neurons; ++n) {
                    const size_t f = size_t(r) * neurons + n;
                    const double magnitude = std::abs(from.center[f]) + std::abs(from.generator[f]);
                    // Covers at least twice the rounding of center and generator to the format.
                    const double out =
                        (from.rest[f] + 4 * Format<T>::unit * magnitude) * to_float32;
                    rest[size_t(r) * width + n] = T(out + 2 * Format<T>::tiny);
                }
        }
        weight = from.weight;
        order = from.order;
        begin = from.begin;
        end = from.end;
        left = from.left;
        right = from.right;
        if (real) return;
        terms = padded_rows(axis.terms, values);
        ordered.resize(terms.size());
        for (int v = 0; v < values; ++v)
            std::copy_n(&terms[size_t(order[v]) * width], width, &ordered[size_t(v) * width]);
    }
    int count(int node) const { return end[node] - begin[node]; }
};

template <class T> struct Network {
    int neurons = 0, width = 0, axes = 0, widest = 0;
    std::vector<AxisTree<T>> trees;
    std::vector<Layer<T>> layers;

    void make(const ModelSpec& from, const Tree* built) {
        neurons = from.neurons;
        width = padded<T>(neurons);
        axes = int(from.axes.size());
        widest = width;
        trees.resize(axes);
        for (int a = 0; a < axes; ++a) trees[a].make(from.axes[a], built[a]);
        layers.resize(from.layers.size());
        for (size_t k = 0; k < layers.size(); ++k) {
            layers[k].make(from.layers[k]);
            widest = std::max(widest, layers[k].width);
        }
    }
    int outputs() const { return layers.empty() ? neurons : layers.back().outputs; }
};

}  // namespace FETA_ISA
}  // namespace feta

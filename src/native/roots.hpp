// Roots: bounds over the whole lattices of several people, one person per lane.
//
// They include the error bounds that all later steps need: of the scores in the source's
// arithmetic, and of the scores that the kernel computes.
#pragma once
#include "zonotope_forward.hpp"

namespace feta {
namespace FETA_ISA {

class Roots {
  public:
    static constexpr int lanes = lanes_of<float>;

    Roots(const ModelSpec& model, const Network<float>& network32, const Network<double>& network64)
        : spec(model), net32(network32), net64(network64), zonotope(net32),
          centers(size_t(lanes) * net32.width), boxes(centers.size()), magnitudes32(centers.size()),
          cancelled_magnitude(net32.width), centers64(centers.size()), magnitudes64(centers.size()),
          axis_magnitudes(size_t(net32.neurons), 0.0),
          all_source_rounding(size_t(lanes) * net32.outputs()),
          all_kernel_errors(all_source_rounding.size()), input_errors(size_t(net32.widest)) {
        largest_values.before.resize(net32.layers.size());
        largest_values.after.resize(net32.layers.size());
        for (const AxisSpec& axis : spec.axes)
            for (int n = 0; n < net32.neurons; ++n) {
                double largest = 0;
                for (int v = 0; v < axis.values && !axis.real; ++v)
                    largest = std::max(largest, axis.magnitudes[size_t(v) * net32.neurons + n]);
                if (axis.real)
                    largest = std::abs(axis.slopes[n]) *
                              std::max(std::abs(axis.low), std::abs(axis.high)) * few64;
                axis_magnitudes[n] += largest;
            }
        for (int n = 0; n < net32.neurons; ++n)
            cancelled_magnitude[n] = outward(spec.cancelled_magnitude[n]);
        const TrackedArithmetic source{spec.source_unit, spec.source_tiny, spec.source_huge,
                                       spec.source_extra_roundings, spec.columns};
        const TrackedArithmetic kernel{Format<float>::unit, Format<float>::tiny, HUGE_VAL,
                                       kernel_extra_roundings, int(spec.axes.size()) + 2};
        const TrackedArithmetic arithmetics[n_tracked] = {source, kernel};
        zonotope.track(arithmetics);
    }

    // Load a person: the contribution of the shared columns to each neuron, without the bias, and
    // the sum of the absolute terms.
    void load_person(int lane, const double* constants, const double* constant_magnitudes) {
        const double rounding = gamma(Format<double>::unit, spec.columns, kernel_extra_roundings);
        const size_t at = size_t(lane) * net32.width;
        for (int n = 0; n < net32.neurons; ++n) {
            const double c = constants[n] + spec.bias[n];
            const double magnitude =
                constant_magnitudes[n] + axis_magnitudes[n] + std::abs(spec.bias[n]);
            centers64[at + n] = c;
            magnitudes64[at + n] = magnitude;
            centers[at + n] = float(c);
            boxes[at + n] =
                float((rounding * magnitude + 2 * Format<float>::unit * std::abs(c)) * to_float32) +
                float(2 * Format<float>::tiny);
            magnitudes32[at + n] = outward(magnitude);
        }
    }

    // Bound the lattices of the first `count` lanes; the other lanes repeat the first person.
    void run(int count) {
        for (int lane = count; lane < lanes; ++lane)
            for (Array<float>* rows : {&centers, &boxes, &magnitudes32})
                std::copy_n(rows->begin(), net32.width,
                            rows->begin() + ptrdiff_t(lane) * net32.width);
        zonotope.bound_roots(centers.data(), boxes.data(), magnitudes32.data(),
                             cancelled_magnitude.data(), largest_values);
        const int outputs = net32.outputs();
        for (int o = 0; o < outputs; ++o)
            for (int lane = 0; lane < count; ++lane) {
                all_source_rounding[size_t(lane) * outputs + o] = zonotope.error(0, o)[lane];
                all_kernel_errors[size_t(lane) * outputs + o] = zonotope.error(1, o)[lane];
            }
    }

    const Zonotope<float>& bounds() const { return zonotope; }
    const float* center(int lane) const { return &centers[size_t(lane) * net32.width]; }
    const float* box(int lane) const { return &boxes[size_t(lane) * net32.width]; }
    const double* center64(int lane) const { return &centers64[size_t(lane) * net32.width]; }
    const double* source_rounding(int lane) const {
        return &all_source_rounding[size_t(lane) * net32.outputs()];
    }
    const double* kernel_errors(int lane) const {
        return &all_kernel_errors[size_t(lane) * net32.outputs()];
    }

    using ByLayer = std::vector<std::vector<double>>;

    // Bound the float64 errors for all counterparts of one person: of the values of each layer, and
    // last of the outputs.
    void point_errors64(int lane, ByLayer& out) {
        out.resize(net64.layers.size() + 1);
        out[0].assign(size_t(net32.neurons), 0.0);
        const double first = 2 * gamma(Format<double>::unit, spec.columns, kernel_extra_roundings);
        for (int n = 0; n < net32.neurons; ++n) {
            const double magnitude =
                magnitudes64[size_t(lane) * net32.width + n] + spec.cancelled_magnitude[n];
            out[0][n] =
                (first * magnitude + point_flushes * (spec.columns + 1) * Format<double>::tiny) *
                sum64;
        }
        propagate_errors(lane, out);
    }

  private:
    const ModelSpec& spec;
    const Network<float>& net32;
    const Network<double>& net64;
    Zonotope<float> zonotope;
    Array<float> centers, boxes, magnitudes32, cancelled_magnitude;  // (lanes, width); last (width)
    std::vector<double> centers64, magnitudes64, axis_magnitudes;  // (lanes, width); last (neurons)
    std::vector<double> all_source_rounding, all_kernel_errors;    // (lanes, outputs)
    LargestValues<float> largest_values;
    std::vector<double> input_errors;  // of one layer, rounding included

    // Propagate the errors before the first activation through the layers.
    void propagate_errors(int lane, ByLayer& errors) {
        const double unit = Format<double>::unit, tiny = Format<double>::tiny;
        for (size_t k = 0; k < net64.layers.size(); ++k) {
            const Layer<double>& layer = net64.layers[k];
            const Activation<double>& activation = layer.activation;
            const double rounding = gamma(unit, layer.inputs, kernel_extra_roundings),
                         activation_rounding = gamma(unit, 1, kernel_extra_roundings);
            const std::vector<double>& errors_before = errors[k];
            std::vector<double>& errors_after = errors[k + 1];
            errors_after.assign(size_t(layer.width), 0.0);
            for (int i = 0; i < layer.inputs; ++i) {
                const size_t at = size_t(i) * lanes + lane;
                double e = errors_before[i];
                if (activation.rounds || activation.steepest[i] != 1) {
                    const double before =
                        activation.steepest[i] * (double(largest_values.before[k][at]) + e) +
                        activation.offset[i];
                    e = e * activation.steepest[i] * (1 + 8 * unit) +
                        (activation.rounds ? activation_rounding * before + point_flushes * tiny
                                           : 0);
                    if (activation.smooth.used()) e += activation.smooth.own_error();
                }
                input_errors[size_t(i)] =
                    e + rounding * (double(largest_values.after[k][at]) + 2 * e) + tiny;
            }
            int first = 0;
            for (; first + 16 <= layer.width; first += 16)
                absolute_sums<4>(layer, first, &errors_after[size_t(first)]);
            for (; first < layer.width; first += 4)
                absolute_sums<1>(layer, first, &errors_after[size_t(first)]);
            for (int o = 0; o < layer.width; ++o)
                errors_after[o] = (errors_after[o] + rounding * layer.bias_magnitudes64[o] +
                                   point_flushes * (layer.inputs + 1) * tiny) *
                                  upward<double>(layer.inputs);
        }
    }

    // Compute |W| · input_errors for K vectors of outputs.
    template <int K> void absolute_sums(const Layer<double>& layer, int first, double* out) const {
        Vec<double> sums[K]{};
        for (int i = 0; i < layer.inputs; ++i) {
            const double* column = &layer.magnitudes64[size_t(i) * layer.width + first];
            for (int v = 0; v < K; ++v) sums[v] += input_errors[size_t(i)] * load(column + 4 * v);
        }
        for (int v = 0; v < K; ++v) store(out + 4 * v, sums[v]);
    }

    // Round up to float32.
    static float outward(double magnitude) {
        return float(magnitude * to_float32) + float(Format<float>::tiny);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

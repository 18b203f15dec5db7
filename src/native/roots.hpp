// Roots: several people's whole lattices bounded at once, a person a lane.
//
// With them come the error bounds that every later step of a person needs: of the source's own
// arithmetic, and of the kernel's.
#pragma once
#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

class Roots {
  public:
    static constexpr int lanes = lanes_of<float>;

    Roots(const ModelSpec& spec, const Network<float>& single, const Network<double>& twice)
        : spec(spec), single(single), twice(twice), zonotope(single),
          centers(size_t(lanes) * single.width), boxes(centers.size()), sizes32(centers.size()),
          folded(single.width), exact(centers.size()), sizes(centers.size()),
          axis_sizes(size_t(single.neurons), 0.0), source_errors(size_t(lanes) * single.outputs()),
          kernel_errors(source_errors.size()), inputs(size_t(single.widest)) {
        reach.before.resize(single.layers.size());
        reach.after.resize(single.layers.size());
        for (const AxisSpec& axis : spec.axes)
            for (int n = 0; n < single.neurons; ++n) {
                double largest = 0;
                for (int v = 0; v < axis.values && !axis.real; ++v)
                    largest = std::max(largest, axis.sizes[size_t(v) * single.neurons + n]);
                if (axis.real)
                    largest = std::abs(axis.slopes[n]) *
                              std::max(std::abs(axis.low), std::abs(axis.high)) * (1 + 0x1p-50);
                axis_sizes[n] += largest;
            }
        for (int n = 0; n < single.neurons; ++n) folded[n] = outward(spec.folded[n]);
        const Doubt source{spec.source_unit, spec.source_tiny, spec.source_huge, spec.source_extra,
                           spec.columns};
        const Doubt own{Format<float>::unit, Format<float>::tiny, HUGE_VAL, kernel_extra,
                        int(spec.axes.size()) + 2};
        const Doubt doubts[most_doubts] = {source, own};
        zonotope.follow(doubts);
    }

    // Take a person: what the shared columns add to the neurons, without the bias, and the terms' sizes.
    void take(int lane, const double* constants, const double* constant_sizes) {
        const double own = gamma(Format<double>::unit, spec.columns, kernel_extra);
        const size_t at = size_t(lane) * single.width;
        for (int n = 0; n < single.neurons; ++n) {
            const double c = constants[n] + spec.bias[n];
            const double size = constant_sizes[n] + axis_sizes[n] + std::abs(spec.bias[n]);
            exact[at + n] = c;
            sizes[at + n] = size;
            centers[at + n] = float(c);
            boxes[at + n] =
                float((own * size + 2 * Format<float>::unit * std::abs(c)) * (1 + 0x1p-20)) +
                float(2 * Format<float>::tiny);
            sizes32[at + n] = outward(size);
        }
    }

    void run(int count) {
        for (int lane = count; lane < lanes; ++lane)
            for (Array<float>* rows : {&centers, &boxes, &sizes32})
                std::copy_n(rows->begin(), single.width,
                            rows->begin() + ptrdiff_t(lane) * single.width);
        zonotope.roots(centers.data(), boxes.data(), sizes32.data(), folded.data(), reach);
        const int outputs = single.outputs();
        for (int o = 0; o < outputs; ++o)
            for (int lane = 0; lane < count; ++lane) {
                source_errors[size_t(lane) * outputs + o] = zonotope.error(0, o)[lane];
                kernel_errors[size_t(lane) * outputs + o] = zonotope.error(1, o)[lane];
            }
    }

    const Zonotope<float>& bounds() const { return zonotope; }
    const float* center(int lane) const { return &centers[size_t(lane) * single.width]; }
    const float* box(int lane) const { return &boxes[size_t(lane) * single.width]; }
    const double* exact_center(int lane) const { return &exact[size_t(lane) * single.width]; }
    const double* source(int lane) const { return &source_errors[size_t(lane) * single.outputs()]; }
    const double* kernel32(int lane) const {
        return &kernel_errors[size_t(lane) * single.outputs()];
    }

    using ByLayer = std::vector<std::vector<double>>;

    // Error bounds in float64 for any counterpart of one person: of each layer's values, and last of the outputs.
    void point_errors(int lane, ByLayer& out) {
        out.resize(twice.layers.size() + 1);
        out[0].assign(size_t(single.neurons), 0.0);
        const double first = 2 * gamma(Format<double>::unit, spec.columns, kernel_extra);
        for (int n = 0; n < single.neurons; ++n) {
            const double size = sizes[size_t(lane) * single.width + n] + spec.folded[n];
            out[0][n] =
                (first * size + 5 * (spec.columns + 1) * Format<double>::tiny) * (1 + 0x1p-30);
        }
        push_errors(lane, out);
    }

  private:
    const ModelSpec& spec;
    const Network<float>& single;
    const Network<double>& twice;
    Zonotope<float> zonotope;
    Array<float> centers, boxes, sizes32, folded;  // (lanes, width); folded (width)
    std::vector<double> exact, sizes, axis_sizes;
    std::vector<double> source_errors, kernel_errors;  // (lanes, outputs)
    Reach<float> reach;
    std::vector<double> inputs;  // of one layer, their errors

    // What errors before the first activation become, layer by layer.
    void push_errors(int lane, ByLayer& errors) {
        const double unit = Format<double>::unit, tiny = Format<double>::tiny;
        for (size_t k = 0; k < twice.layers.size(); ++k) {
            const Layer<double>& layer = twice.layers[k];
            const Activation<double>& bend = layer.activation;
            const double rounding = gamma(unit, layer.inputs, kernel_extra),
                         small = gamma(unit, 1, kernel_extra);
            const std::vector<double>& now = errors[k];
            std::vector<double>& next = errors[k + 1];
            next.assign(size_t(layer.width), 0.0);
            for (int i = 0; i < layer.inputs; ++i) {
                const size_t at = size_t(i) * lanes + lane;
                double e = now[i];
                if (bend.rounds || bend.steepest[i] != 1) {
                    const double before =
                        bend.steepest[i] * (double(reach.before[k][at]) + e) + bend.offset[i];
                    e = e * bend.steepest[i] * (1 + 8 * unit) +
                        (bend.rounds ? small * before + 5 * tiny : 0);
                }
                inputs[size_t(i)] = e + rounding * (double(reach.after[k][at]) + 2 * e) + tiny;
            }
            int first = 0;
            for (; first + 16 <= layer.width; first += 16)
                absolute_sums<4>(layer, first, &next[size_t(first)]);
            for (; first < layer.width; first += 4)
                absolute_sums<1>(layer, first, &next[size_t(first)]);
            for (int o = 0; o < layer.width; ++o)
                next[o] =
                    (next[o] + rounding * layer.exact_bias[o] + 5 * (layer.inputs + 1) * tiny) *
                    (1 + 0x1p-30);
        }
    }

    // |W| · inputs, for some vectors of outputs.
    template <int K> void absolute_sums(const Layer<double>& layer, int first, double* out) const {
        Vec<double> sums[K]{};
        for (int i = 0; i < layer.inputs; ++i) {
            const double* column = &layer.exact_sizes[size_t(i) * layer.width + first];
            for (int v = 0; v < K; ++v) sums[v] += inputs[size_t(i)] * load(column + 4 * v);
        }
        for (int v = 0; v < K; ++v) store(out + 4 * v, sums[v]);
    }

    static float outward(double size) {
        return float(size * (1 + 0x1p-20)) + float(Format<float>::tiny);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

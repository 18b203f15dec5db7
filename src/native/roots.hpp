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
        : spec(spec), single(single), twice(twice), zonotope(single), centers(size_t(lanes) * single.width),
          boxes(centers.size()), sizes32(centers.size()), folded(single.width), exact(centers.size()),
          sizes(centers.size()), axis_sizes(size_t(single.neurons), 0.0),
          source_errors(size_t(lanes) * single.outputs()), kernel_errors(source_errors.size()) {
        reach.before.resize(single.layers.size());
        reach.after.resize(single.layers.size());
        for (const AxisSpec& axis : spec.axes)
            for (int n = 0; n < single.neurons; ++n) {
                double largest = 0;
                for (int v = 0; v < axis.values && !axis.real; ++v)
                    largest = std::max(largest, axis.sizes[size_t(v) * single.neurons + n]);
                if (axis.real) largest = std::abs(axis.slopes[n]) * std::max(std::abs(axis.low), std::abs(axis.high)) * (1 + 0x1p-50);
                axis_sizes[n] += largest;
            }
        for (int n = 0; n < single.neurons; ++n) folded[n] = outward(spec.folded[n]);
        const Doubt source{spec.source_unit, spec.source_tiny, spec.source_huge, spec.source_extra, spec.columns};
        const Doubt own{Format<float>::unit, Format<float>::tiny, HUGE_VAL, kernel_extra, int(spec.axes.size()) + 2};
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
            boxes[at + n] = float((own * size + 2 * Format<float>::unit * std::abs(c)) * (1 + 0x1p-20)) + float(2 * Format<float>::tiny);
            sizes32[at + n] = outward(size);
        }
    }

    void run(int count) {
        for (int lane = count; lane < lanes; ++lane)
            for (Array<float>* rows : {&centers, &boxes, &sizes32})
                std::copy_n(rows->begin(), single.width, rows->begin() + ptrdiff_t(lane) * single.width);
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
    const double* kernel32(int lane) const { return &kernel_errors[size_t(lane) * single.outputs()]; }

    // The first layer's box in float64.
    void exact_box(int lane, double* out) const {
        const double own = gamma(Format<double>::unit, spec.columns, kernel_extra);
        for (int n = 0; n < single.neurons; ++n) out[n] = own * sizes[size_t(lane) * single.width + n] * (1 + 0x1p-20) + 2 * Format<double>::tiny;
    }

    // Error bounds of the outputs in float64, for any counterpart of one person.
    void kernel64(int lane, double* out) {
        const double unit = Format<double>::unit, tiny = Format<double>::tiny;
        now.assign(size_t(single.neurons), 0.0);
        const double first = 2 * gamma(unit, spec.columns, kernel_extra);
        for (int n = 0; n < single.neurons; ++n) {
            const double size = sizes[size_t(lane) * single.width + n] + spec.folded[n];
            now[n] = (first * size + 5 * (spec.columns + 1) * tiny) * (1 + 0x1p-30);
        }
        for (size_t k = 0; k < twice.layers.size(); ++k) {
            const Layer<double>& layer = twice.layers[k];
            const Activation<double>& bend = layer.activation;
            const double rounding = gamma(unit, layer.inputs, kernel_extra), small = gamma(unit, 1, kernel_extra);
            next.assign(size_t(layer.width), 0.0);
            for (int i = 0; i < layer.inputs; ++i) {
                const size_t at = size_t(i) * lanes + lane;
                double e = now[i];
                if (bend.rounds || bend.steepest[i] != 1) {
                    const double before = bend.steepest[i] * (double(reach.before[k][at]) + e) + bend.offset[i];
                    e = e * bend.steepest[i] * (1 + 8 * unit) + (bend.rounds ? small * before + 5 * tiny : 0);
                }
                const double in = e + rounding * (double(reach.after[k][at]) + 2 * e) + tiny;
                const double* column = &layer.exact_sizes[size_t(i) * layer.width];
                for (int o = 0; o < layer.width; ++o) next[o] += in * column[o];
            }
            for (int o = 0; o < layer.width; ++o)
                next[o] = (next[o] + rounding * layer.exact_bias[o] + 5 * (layer.inputs + 1) * tiny) * (1 + 0x1p-30);
            now.swap(next);
        }
        std::copy_n(now.begin(), single.outputs(), out);
    }

  private:
    const ModelSpec& spec;
    const Network<float>& single;
    const Network<double>& twice;
    Zonotope<float> zonotope;
    Array<float> centers, boxes, sizes32, folded;       // (lanes, width); folded (width)
    std::vector<double> exact, sizes, axis_sizes;
    std::vector<double> source_errors, kernel_errors;   // (lanes, outputs)
    std::vector<double> now, next;
    Reach<float> reach;

    static float outward(double size) { return float(size * (1 + 0x1p-20)) + float(Format<float>::tiny); }
};

}  // namespace FETA_ISA
}  // namespace feta

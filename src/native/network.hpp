// Network: the layers in one number format, laid out for neurons side by side and for lanes.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "arithmetic.hpp"
#include "spec.hpp"
#include "vector.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> struct Activation {
    int pieces = 1, width = 0;       // width is padded
    bool relu = false, identity = false;
    std::vector<T> breaks, slopes, intercepts, steepest, offset;  // (pieces, width); last two (width)
    bool rounds = false;

    void make(const ActivationSpec& from, int neurons) {
        pieces = from.pieces;
        width = padded<T>(neurons);
        const auto spreaded = [&](const std::vector<double>& flat, int rows) {
            std::vector<T> out(size_t(std::max(rows, 0)) * width, T(0));
            for (int r = 0; r < rows; ++r)
                for (int n = 0; n < neurons; ++n)
                    out[size_t(r) * width + n] = T(flat[size_t(r) * from.width + (from.width > 1 ? n : 0)]);
            return out;
        };
        breaks = spreaded(from.breaks, pieces - 1);
        slopes = spreaded(from.slopes, pieces);
        intercepts = spreaded(from.intercepts, pieces);
        steepest.assign(width, T(0));
        offset.assign(width, T(0));
        relu = pieces == 2;
        identity = pieces == 1;
        for (int p = 0; p < pieces; ++p)
            for (int n = 0; n < neurons; ++n) {
                const T slope = slopes[size_t(p) * width + n], shift = intercepts[size_t(p) * width + n];
                steepest[n] = std::max(steepest[n], std::abs(slope));
                offset[n] = std::max(offset[n], std::abs(shift));
                relu &= slope == T(p) && shift == 0;
                identity &= slope == 1 && shift == 0;
                rounds |= !(slope == 0 || slope == 1 || slope == -1) || shift != 0;
            }
        for (int p = 0; p + 1 < pieces; ++p)
            for (int n = 0; n < neurons; ++n) {
                const T at = breaks[size_t(p) * width + n];
                relu &= at == 0;
                // A break rounded to the format moves the kink by as much.
                rounds |= at != 0;
                offset[n] = std::max(offset[n], T(2) * steepest[n] * std::abs(at));
            }
    }

    T at(T z, int neuron) const {
        int piece = 0;
        for (int p = 0; p + 1 < pieces; ++p) piece += z >= breaks[size_t(p) * width + neuron];
        return slopes[size_t(piece) * width + neuron] * z + intercepts[size_t(piece) * width + neuron];
    }
};

template <class T> struct Layer {
    int inputs = 0, outputs = 0, width = 0;  // width: outputs, padded
    Activation<T> activation;
    std::vector<T> columns, sizes;           // (inputs, width): W transposed, and |W| + floor
    std::vector<T> rows;                     // (outputs, inputs)
    std::vector<T> bias, bias_size;          // (width); bias_size: |b|
    std::vector<double> exact_sizes, exact_bias;  // (inputs, width) and |b| + folded, for error bounds

    void make(const LayerSpec& from) {
        inputs = from.inputs;
        outputs = from.outputs;
        width = padded<T>(outputs);
        activation.make(from.activation, inputs);
        columns.assign(size_t(inputs) * width, T(0));
        sizes.assign(size_t(inputs) * width, T(0));
        exact_sizes.assign(size_t(inputs) * width, 0.0);
        rows.assign(size_t(outputs) * inputs, T(0));
        bias.assign(width, T(0));
        bias_size.assign(width, T(0));
        exact_bias.assign(width, 0.0);
        for (int o = 0; o < outputs; ++o) {
            bias[o] = T(from.bias[o]);
            bias_size[o] = std::abs(bias[o]);
            exact_bias[o] = std::abs(from.bias[o]) + from.folded[o];
            for (int i = 0; i < inputs; ++i) {
                const double w = from.weight[size_t(o) * inputs + i];
                rows[size_t(o) * inputs + i] = T(w);
                columns[size_t(i) * width + o] = T(w);
                sizes[size_t(i) * width + o] = T(std::abs(w) * (1 + 0x1p-22) + floor_size);
                exact_sizes[size_t(i) * width + o] = std::abs(w) + floor_size;
            }
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

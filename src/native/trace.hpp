// Trace: the score along a real-valued attribute, piece by piece, and proved bounds between the kinks.
//
// With everything else fixed the score is piecewise linear in one number. Following its value and its
// slope from kink to kink finds the highest point; that nothing was overlooked is then proved by
// bounding the pieces in float64.
#pragma once
#include "outputs.hpp"

namespace feta {
namespace FETA_ISA {

class Trace {
  public:
    static constexpr int lanes = lanes_of<double>;
    using V = Vec<double>;

    explicit Trace(const Network<double>& network)
        : net(network), block(network.widest, 2), zonotope(network), firsts(size_t(lanes) * network.width), boxes(firsts.size()),
          slopes(size_t(network.width)), centers(firsts.size()), generators(firsts.size()), rests(firsts.size()) {}

    // Take a line: the first layer is `first` + slope · t for t from `from` to `to`, give or take `box`.
    void take(int lane, const double* first, const double* box, double from, double to) {
        std::copy_n(first, net.width, &firsts[size_t(lane) * net.width]);
        std::copy_n(box, net.width, &boxes[size_t(lane) * net.width]);
        begins[lane] = from;
        ends[lane] = to;
    }
    void set_slopes(const double* along) { std::copy_n(along, net.width, slopes.begin()); }

    // Follow the lines; `sign` is 1 to look for the highest score, −1 for the lowest. The score at each
    // kink is noted, and the best of each line.
    void follow(int count, double sign) {
        for (int l = count; l < lanes; ++l) take(l, firsts.data(), boxes.data(), begins[0], ends[0]);
        for (int l = 0; l < lanes; ++l) {
            kinks[l].clear();
            best[l] = -std::numeric_limits<double>::infinity();
            best_at[l] = begins[l];
            best_kink[l] = 0;
        }
        alignas(64) double now[lanes], step[lanes], score[lanes];
        std::copy_n(begins, lanes, now);
        bool more = true;
        for (int round = 0; more && round < most_kinks; ++round) {
            forward(now, step, score);
            more = false;
            for (int l = 0; l < count; ++l) {
                if (!kinks[l].empty() && kinks[l].back() == ends[l]) continue;
                kinks[l].push_back(now[l]);
                if (sign * score[l] > best[l]) {
                    best[l] = sign * score[l];
                    best_at[l] = now[l];
                    best_kink[l] = kinks[l].size() - 1;
                }
                if (now[l] == ends[l]) continue;
                const double least = now[l] + (ends[l] - begins[l]) * 0x1p-44;  // so that it moves on
                const double next = std::max(now[l] + step[l], least);
                now[l] = next < ends[l] ? next : ends[l];
                more = true;
            }
        }
        for (int l = 0; l < count; ++l)
            if (kinks[l].back() != ends[l]) kinks[l].push_back(ends[l]);
    }

    const std::vector<double>& kinks_of(int lane) const { return kinks[lane]; }
    double best_of(int lane) const { return best[lane]; }
    double best_place(int lane) const { return best_at[lane]; }
    size_t best_kink_of(int lane) const { return best_kink[lane]; }

    // Bound the score between numbers of the lines taken: up to `lanes` ranges at once.
    struct Range {
        int line;
        double from, to;
    };
    void bound(const Range* ranges, int count, double sign, double* highs) {
        for (int l = 0; l < lanes; ++l) {
            const Range& range = ranges[l < count ? l : 0];
            const double middle = range.from + (range.to - range.from) / 2;
            const double half = std::max(range.to - middle, middle - range.from) * (1 + 0x1p-50);
            const double *first = &firsts[size_t(range.line) * net.width], *box = &boxes[size_t(range.line) * net.width];
            for (int n = 0; n < net.width; ++n) {
                const size_t at = size_t(l) * net.width + n;
                const double term = slopes[n] * middle;
                centers[at] = first[n] + term;
                generators[at] = slopes[n] * half;
                // Three roundings, of sizes not above these.
                rests[at] = box[n] + 0x1p-50 * (std::abs(first[n]) + std::abs(term) + std::abs(generators[at])) + 2 * Format<double>::tiny;
            }
        }
        zonotope.ranges(centers.data(), generators.data(), rests.data(), sign);
        for (int l = 0; l < count; ++l) highs[l] = sign > 0 ? zonotope.high()[l] : -zonotope.low()[l];
    }

  private:
    static constexpr int most_kinks = 4096;
    const Network<double>& net;
    Block<double> block;  // rows: value and slope
    Zonotope<double> zonotope;
    Array<double> firsts, boxes, slopes, centers, generators, rests;
    double begins[lanes], ends[lanes], best[lanes], best_at[lanes];
    size_t best_kink[lanes];
    std::vector<double> kinks[lanes];

    // Scores at these numbers, and how far the next kink is.
    void forward(const double* now, double* step, double* score) {
        const V at = load(now);
        V next = spread(std::numeric_limits<double>::infinity());
        const double* pointers[lanes];
        for (int l = 0; l < lanes; ++l) pointers[l] = &firsts[size_t(l) * net.width];
        for (int n = 0; n < net.width; n += lanes) transpose(pointers, size_t(n), block.at(n, 0), block.step());
        for (int n = 0; n < net.neurons; ++n) {
            double* x = block.at(n, 0);
            store(x, load(x) + slopes[n] * at);
            store(x + lanes, spread(slopes[n]));
        }
        for (const Layer<double>& layer : net.layers) {
            block.begin_alive();
            for (int n = 0; n < layer.inputs; ++n) bend(layer.activation, n, next);
            block.multiply(layer, 2, 0);
            for (int o = 0; o < layer.outputs; ++o) store(block.at(o, 0), load(block.at(o, 0)) + layer.bias[o]);
        }
        store(score, load(block.at(0, 0)));
        store(step, next);
    }

    void bend(const Activation<double>& activation, int n, V& next) {
        const V zero{};
        double* x = block.at(n, 0);
        const V z = load(x), slope = load(x + lanes);
        V factor = spread(activation.slopes[n]), shift = spread(activation.intercepts[n]);
        for (int p = 1; p < activation.pieces; ++p) {
            const size_t place = size_t(p) * activation.width + n;
            const V kink = spread(activation.breaks[place - activation.width]);
            // On the kink itself, the piece that comes next counts.
            const Mask<double> right = (z > kink) | ((z == kink) & (slope > zero));
            factor = select<double>(right, spread(activation.slopes[place]), factor);
            shift = select<double>(right, spread(activation.intercepts[place]), shift);
            const V far = (kink - z) / slope;
            next = select<double>((far > zero) & (far < next), far, next);
        }
        const V out = factor * z + shift, moves = factor * slope;
        if (!any<double>((out != zero) | (moves != zero))) return;
        store(x, out);
        store(x + lanes, moves);
        block.keep_alive(n);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

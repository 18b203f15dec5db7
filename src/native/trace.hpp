// Trace: the score along a real-valued attribute, from kink to kink, and how high it can be between them.
//
// With everything else fixed the score is piecewise linear in one number. Between two numbers at which
// no neuron has passed a break, everything is linear, so the score is highest at one of them. A neuron
// that may have passed one, by rounding or because a kink was missed, adds at most as much as it went
// beyond the break, times what the layers behind it can make of that. Where this is more than rounding
// explains, the step is halved.
#pragma once
#include "outputs.hpp"

namespace feta {
namespace FETA_ISA {

class Trace {
  public:
    static constexpr int lanes = lanes_of<double>;
    using V = Vec<double>;

    explicit Trace(const Network<double>& network)
        : net(network), block(network.widest, 2), firsts(size_t(lanes) * network.width),
          slopes(size_t(network.width)) {
        Array<double> behind(1, 1.0);  // how much the score can move with each output of a layer
        penalties.resize(net.layers.size());
        for (size_t k = net.layers.size(); k-- > 0;) {
            const Layer<double>& layer = net.layers[k];
            const Activation<double>& bend = layer.activation;
            Array<double> gains(size_t(layer.inputs), 0.0);
            for (int i = 0; i < layer.inputs; ++i)
                for (size_t o = 0; o < behind.size() && o < size_t(layer.outputs); ++o)
                    gains[i] +=
                        layer.exact_sizes[size_t(i) * layer.width + o] * behind[o] * (1 + 0x1p-40);
            for (int p = 1; p < bend.pieces; ++p)
                for (int i = 0; i < layer.inputs; ++i) {
                    const size_t place = size_t(p) * bend.width + i;
                    penalties[k].push_back(
                        gains[i] * std::abs(bend.slopes[place] - bend.slopes[place - bend.width]) *
                        (1 + 0x1p-50));
                }
            for (int i = 0; i < layer.inputs; ++i) gains[i] *= bend.steepest[i];
            behind = gains;
            before.emplace_back(size_t(layer.inputs) * lanes);
        }
        std::reverse(before.begin(), before.end());
        here = before;
    }

    void set_slopes(const double* along) { std::copy_n(along, net.width, slopes.begin()); }

    // Turn to a person: the error bounds of each layer's values, before its activation.
    void set_errors(const std::vector<std::vector<double>>& bounds) {
        errors = &bounds;
        noise = 0;
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const size_t inputs = size_t(net.layers[k].inputs);
            for (size_t row = 0; row < penalties[k].size(); row += inputs)
                for (size_t n = 0; n < inputs; ++n) noise += penalties[k][row + n] * bounds[k][n];
        }
    }

    // Take a line: the first layer is `first` + slope · t for t from `from` to `to`.
    void take(int lane, const double* first, double from, double to) {
        std::copy_n(first, net.width, &firsts[size_t(lane) * net.width]);
        begins[lane] = from;
        ends[lane] = to;
    }

    // Follow the lines; `sign` is 1 to look for the highest score, −1 for the lowest.
    void follow(int count, double sign) {
        for (int l = count; l < lanes; ++l) take(l, firsts.data(), begins[0], ends[0]);
        alignas(64) double now[lanes], step[lanes], score[lanes], off[lanes];
        double reached[lanes], scores[lanes];
        bool done[lanes];
        std::copy_n(begins, lanes, now);
        forward(now, step, score, off);
        before.swap(here);
        for (int l = 0; l < lanes; ++l) {
            reached[l] = now[l];
            scores[l] = best[l] = ceiling[l] = sign * score[l];
            best_at[l] = now[l];
            done[l] = l >= count || now[l] == ends[l];
            now[l] = next_of(l, now[l], step[l]);
        }
        for (int round = 0; round < most_rounds; ++round) {
            if (std::all_of(done, done + lanes, [](bool one) { return one; })) return;
            forward(now, step, score, off);
            Mask<double> kept{};
            for (int l = 0; l < lanes; ++l) {
                if (done[l]) continue;
                const double most = 4 * noise + 0x1p-42 * std::abs(score[l]);
                if (!(off[l] <= most) &&
                    now[l] - reached[l] > least_step(l)) {  // a kink was missed, or is not a number
                    now[l] = reached[l] + (now[l] - reached[l]) / 2;
                    continue;
                }
                kept[l] = -1;
                const double height = sign * score[l],
                             top = std::max(height, scores[l]) + off[l] * (1 + 0x1p-40);
                ceiling[l] = top == top ? std::max(ceiling[l], top)
                                        : std::numeric_limits<double>::infinity();
                if (height > best[l]) {
                    best[l] = height;
                    best_at[l] = now[l];
                }
                scores[l] = height;
                reached[l] = now[l];
                done[l] = now[l] == ends[l];
                now[l] = next_of(l, now[l], step[l]);
            }
            go_on(kept);
        }
        for (int l = 0; l < lanes; ++l)
            if (!done[l]) ceiling[l] = std::numeric_limits<double>::infinity();
    }

    // The best point found on a line, and what no point of it exceeds but for the scores' own rounding.
    double best_of(int lane) const { return best[lane]; }
    double best_place(int lane) const { return best_at[lane]; }
    double ceiling_of(int lane) const { return ceiling[lane]; }

  private:
    static constexpr int most_rounds = 4096;
    const Network<double>& net;
    Block<double> block;  // rows: value and slope
    Array<double> firsts, slopes;
    std::vector<Array<double>>
        penalties;  // by layer, (breaks, neurons): what being beyond a break can add to the score
    std::vector<Array<double>> before,
        here;  // by layer: values before activation, at the last number and at this one
    const std::vector<std::vector<double>>* errors = nullptr;
    double noise = 0;  // what errors alone can add
    double begins[lanes], ends[lanes], best[lanes], best_at[lanes], ceiling[lanes];

    double least_step(int lane) const { return (ends[lane] - begins[lane]) * 0x1p-44; }

    double next_of(int lane, double at, double step) const {
        const double next = std::max(at + step, at + least_step(lane));  // so that it moves on
        return next < ends[lane] ? next : ends[lane];
    }

    // The lanes kept go on from here.
    void go_on(Mask<double> kept) {
        if (all<double>(kept)) return before.swap(here);
        for (size_t k = 0; k < before.size(); ++k)
            for (size_t at = 0; at < before[k].size(); at += lanes)
                store(&before[k][at],
                      select<double>(kept, load(&here[k][at]), load(&before[k][at])));
    }

    // Scores at these numbers, how far the next kink is, and how far the score may be from linear since the last.
    void forward(const double* now, double* step, double* score, double* off) {
        const V at = load(now);
        Nearest next;
        V wrong{};
        const double* pointers[lanes];
        for (int l = 0; l < lanes; ++l) pointers[l] = &firsts[size_t(l) * net.width];
        for (int n = 0; n < net.width; n += lanes)
            transpose(pointers, size_t(n), block.at(n, 0), block.step());
        for (int n = 0; n < net.neurons; ++n) {
            double* x = block.at(n, 0);
            store(x, load(x) + slopes[n] * at);
            store(x + lanes, spread(slopes[n]));
        }
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const Layer<double>& layer = net.layers[k];
            block.begin_alive();
            for (int n = 0; n < layer.inputs; ++n) {
                if (layer.activation.relu)
                    bend_relu(k, n, next, wrong);
                else
                    bend(k, n, next, wrong);
            }
            block.multiply(layer, 2, 0);
            for (int o = 0; o < layer.outputs; ++o)
                store(block.at(o, 0), load(block.at(o, 0)) + layer.bias[o]);
        }
        store(score, load(block.at(0, 0)));
        store(step, next.far / next.slope);
        store(off, wrong);
    }

    // The nearest kink so far: `far` over `slope` away. Compared by products: a division a neuron would be half the time.
    struct Nearest {
        V far = spread(1.0), slope{};
        void take(V to_kink, V moves, Mask<double> not_on) {
            const V other_far = absolute<double>(to_kink), other_slope = absolute<double>(moves);
            const Mask<double> nearer =
                not_on & (to_kink * moves > V{}) & (other_far * slope < far * other_slope);
            far = select<double>(nearer, other_far, far);
            slope = select<double>(nearer, other_slope, slope);
        }
    };

    void bend(size_t k, int n, Nearest& next, V& wrong) {
        const Activation<double>& activation = net.layers[k].activation;
        const V zero{};
        double* x = block.at(n, 0);
        const V z = load(x), slope = load(x + lanes), last = load(&before[k][size_t(n) * lanes]),
                near = spread((*errors)[k][n]);
        store(&here[k][size_t(n) * lanes], z);
        const V top = larger<double>(z, last), bottom = smaller<double>(z, last);
        V value = activation.slopes[n] * z + activation.intercepts[n],
          factor = spread(activation.slopes[n]);
        for (int p = 1; p < activation.pieces; ++p) {
            const size_t place = size_t(p) * activation.width + n;
            const V kink = spread(activation.breaks[place - activation.width]), far = kink - z;
            value = select<double>(
                z >= kink, activation.slopes[place] * z + activation.intercepts[place], value);
            // On the kink itself, or as near as errors are, the piece that comes next counts.
            const Mask<double> on = absolute<double>(far) <= near;
            const Mask<double> right = (~on & (z > kink)) | (on & (slope > zero));
            factor = select<double>(right, spread(activation.slopes[place]), factor);
            next.take(far, slope, ~on);
            const V beyond = smaller<double>(top - kink, kink - bottom) + near;
            // In this order: what is not a number stays so.
            wrong += penalties[k][size_t((p - 1) * net.layers[k].inputs + n)] *
                     larger<double>(zero, beyond);
        }
        keep(n, value, factor * slope);
    }

    // The same for the most usual activation, in half the operations.
    void bend_relu(size_t k, int n, Nearest& next, V& wrong) {
        const V zero{};
        const double* x = block.at(n, 0);
        const V z = load(x), slope = load(x + lanes), last = load(&before[k][size_t(n) * lanes]),
                near = spread((*errors)[k][n]);
        store(&here[k][size_t(n) * lanes], z);
        const Mask<double> on = absolute<double>(z) <= near;
        const Mask<double> right = (z > near) | (on & (slope > zero));
        next.take(-z, slope, ~on);
        const V beyond = smaller<double>(larger<double>(z, last), -smaller<double>(z, last)) + near;
        wrong += penalties[k][size_t(n)] * larger<double>(zero, beyond);
        keep(n, larger<double>(z, zero), select<double>(right, slope, zero));
    }

    void keep(int n, V value, V moves) {
        store(block.at(n, 0), value);
        store(block.at(n, 1), moves);
        block.keep_alive_if(any<double>((value != V{}) | (moves != V{})), n);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

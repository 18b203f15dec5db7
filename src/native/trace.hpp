// Trace: the score along a real-valued attribute, from kink to kink, with an upper bound in
// between.
//
// With all other attributes fixed, the score is piecewise linear in one variable. If no neuron
// passes a break between two positions, the score is linear there and highest at one of them. A
// neuron that may have passed a break, by rounding or because a kink was missed, adds at most its
// overshoot times the gain of the layers after it. If this exceeds what rounding explains, the step
// is halved.
#pragma once
#include "scores.hpp"

namespace feta {
namespace FETA_ISA {

class Trace {
  public:
    static constexpr int lanes = lanes_of<double>;
    using V = Vec<double>;

    explicit Trace(const Network<double>& network)
        : net(network), block(network.widest, 2), first_layers(size_t(lanes) * network.width),
          slopes(size_t(network.width)) {
        Array<double> downstream(1, 1.0);  // by output of a layer: largest |d score / d output|
        penalties.resize(net.layers.size());
        int n_kinks = 0;
        for (size_t k = net.layers.size(); k-- > 0;) {
            const Layer<double>& layer = net.layers[k];
            const Activation<double>& activation = layer.activation;
            Array<double> gains(size_t(layer.inputs), 0.0);
            for (int i = 0; i < layer.inputs; ++i)
                for (size_t o = 0; o < downstream.size() && o < size_t(layer.outputs); ++o)
                    gains[i] += layer.magnitudes64[size_t(i) * layer.width + o] * downstream[o] *
                                upward<double>(layer.outputs);
            for (int p = 1; p < activation.pieces; ++p)
                for (int i = 0; i < layer.inputs; ++i) {
                    const size_t index = size_t(p) * activation.width + i;
                    penalties[k].push_back(gains[i] *
                                           std::abs(activation.slopes[index] -
                                                    activation.slopes[index - activation.width]) *
                                           few64);
                }
            for (int i = 0; i < layer.inputs; ++i) gains[i] *= activation.steepest[i];
            downstream = gains;
            previous.emplace_back(size_t(layer.inputs) * lanes);
            n_kinks += int(penalties[k].size());
        }
        outward = upward<double>(n_kinks);
        std::reverse(previous.begin(), previous.end());
        current = previous;
    }

    void set_slopes(const double* values) { std::copy_n(values, net.width, slopes.begin()); }

    // Set the error bounds of one person: of the values of each layer before its activation.
    void set_errors(const std::vector<std::vector<double>>& bounds) {
        errors = &bounds;
        noise = 0;
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const size_t inputs = size_t(net.layers[k].inputs);
            for (size_t row = 0; row < penalties[k].size(); row += inputs)
                for (size_t n = 0; n < inputs; ++n) noise += penalties[k][row + n] * bounds[k][n];
        }
    }

    // Load a line: the first layer is `first` + slope · t for t from `from` to `to`.
    void load_line(int lane, const double* first, double from, double to) {
        std::copy_n(first, net.width, &first_layers[size_t(lane) * net.width]);
        begins[lane] = from;
        ends[lane] = to;
    }

    // Trace the lines; `sign` 1 maximizes the score, −1 minimizes it.
    void run(int count, double sign) {
        for (int l = count; l < lanes; ++l) load_line(l, first_layers.data(), begins[0], ends[0]);
        alignas(64) double positions[lanes], step[lanes], score[lanes], deviation[lanes];
        double accepted_at[lanes], accepted_scores[lanes];
        bool done[lanes];
        std::copy_n(begins, lanes, positions);
        forward(positions, step, score, deviation);
        previous.swap(current);
        for (int l = 0; l < lanes; ++l) {
            accepted_at[l] = positions[l];
            accepted_scores[l] = best[l] = upper[l] = sign * score[l];
            best_at[l] = positions[l];
            done[l] = l >= count || positions[l] == ends[l];
            positions[l] = next_position(l, positions[l], step[l]);
        }
        for (int round = 0; round < max_rounds; ++round) {
            if (std::all_of(done, done + lanes, [](bool lane_done) { return lane_done; })) return;
            forward(positions, step, score, deviation);
            Mask<double> accepted{};
            for (int l = 0; l < lanes; ++l) {
                if (done[l]) continue;
                const double allowed = 4 * noise + trace_rounding * std::abs(score[l]);
                // A kink was missed, or the deviation is NaN.
                if (!(deviation[l] <= allowed) && positions[l] - accepted_at[l] > min_step(l)) {
                    positions[l] = accepted_at[l] + (positions[l] - accepted_at[l]) / 2;
                    continue;
                }
                accepted[l] = -1;
                const double value = sign * score[l],
                             peak = std::max(value, accepted_scores[l]) + deviation[l] * outward;
                upper[l] = peak == peak ? std::max(upper[l], peak)
                                        : std::numeric_limits<double>::infinity();
                if (value > best[l]) {
                    best[l] = value;
                    best_at[l] = positions[l];
                }
                accepted_scores[l] = value;
                accepted_at[l] = positions[l];
                done[l] = positions[l] == ends[l];
                positions[l] = next_position(l, positions[l], step[l]);
            }
            accept(accepted);
        }
        for (int l = 0; l < lanes; ++l)
            if (!done[l]) upper[l] = std::numeric_limits<double>::infinity();
    }

    // The best point of a line, and an upper bound of sign · score over the line. Both are computed
    // scores: their error bounds are not included.
    double best_score(int lane) const { return best[lane]; }
    double best_position(int lane) const { return best_at[lane]; }
    double upper_bound(int lane) const { return upper[lane]; }

  private:
    static constexpr int max_rounds = 4096;
    const Network<double>& net;
    Block<double> block;  // rows: value and slope
    Array<double> first_layers, slopes;
    // By layer, (breaks, neurons): the most that one unit of overshoot can add to the score.
    std::vector<Array<double>> penalties;
    // By layer: values before the activation, at the last accepted position and at the current one.
    std::vector<Array<double>> previous, current;
    const std::vector<std::vector<double>>* errors = nullptr;
    double outward = 1;  // covers the rounding of a sum over all kinks
    double noise = 0;    // the most that errors alone can add
    double begins[lanes], ends[lanes], best[lanes], best_at[lanes], upper[lanes];

    double min_step(int lane) const { return (ends[lane] - begins[lane]) * trace_step; }

    double next_position(int lane, double at, double step) const {
        const double next = std::max(at + step, at + min_step(lane));  // always advances
        return next < ends[lane] ? next : ends[lane];
    }

    // Continue from the current position in the accepted lanes.
    void accept(Mask<double> accepted) {
        if (all<double>(accepted)) return previous.swap(current);
        for (size_t k = 0; k < previous.size(); ++k)
            for (size_t at = 0; at < previous[k].size(); at += lanes)
                store(&previous[k][at],
                      select<double>(accepted, load(&current[k][at]), load(&previous[k][at])));
    }

    // Compute the scores at these positions, the step to the next kink, and a bound of the
    // deviation from linear since the last accepted position.
    void forward(const double* positions, double* step, double* score, double* deviation) {
        const V at = load(positions);
        NearestKink next;
        V deviation_sum{};
        const double* pointers[lanes];
        for (int l = 0; l < lanes; ++l) pointers[l] = &first_layers[size_t(l) * net.width];
        for (int n = 0; n < net.width; n += lanes)
            transpose(pointers, size_t(n), block.at(n, 0), block.neuron_stride());
        for (int n = 0; n < net.neurons; ++n) {
            double* x = block.at(n, 0);
            store(x, load(x) + slopes[n] * at);
            store(x + lanes, broadcast(slopes[n]));
        }
        for (size_t k = 0; k < net.layers.size(); ++k) {
            const Layer<double>& layer = net.layers[k];
            block.clear_active();
            for (int n = 0; n < layer.inputs; ++n) {
                if (layer.activation.relu)
                    activate_relu(k, n, next, deviation_sum);
                else
                    activate(k, n, next, deviation_sum);
            }
            block.multiply(layer, 2, 0);
            for (int o = 0; o < layer.outputs; ++o)
                store(block.at(o, 0), load(block.at(o, 0)) + layer.bias[o]);
        }
        store(score, load(block.at(0, 0)));
        store(step, next.distance / next.slope);
        store(deviation, deviation_sum);
    }

    // The nearest kink so far, at distance / slope. Products are compared instead of quotients,
    // because one division per neuron would take half of the time.
    struct NearestKink {
        V distance = broadcast(1.0), slope{};
        void consider(V to_kink, V rate, Mask<double> not_on_kink) {
            const V other_distance = absolute<double>(to_kink),
                    other_slope = absolute<double>(rate);
            const Mask<double> nearer = not_on_kink & (to_kink * rate > V{}) &
                                        (other_distance * slope < distance * other_slope);
            distance = select<double>(nearer, other_distance, distance);
            slope = select<double>(nearer, other_slope, slope);
        }
    };

    void activate(size_t k, int n, NearestKink& next, V& deviation_sum) {
        const Activation<double>& activation = net.layers[k].activation;
        const V zero{};
        double* x = block.at(n, 0);
        const V z = load(x), slope = load(x + lanes), last = load(&previous[k][size_t(n) * lanes]),
                error = broadcast((*errors)[k][n]);
        store(&current[k][size_t(n) * lanes], z);
        const V top = larger<double>(z, last), bottom = smaller<double>(z, last);
        V value = activation.slopes[n] * z + activation.intercepts[n],
          factor = broadcast(activation.slopes[n]);
        for (int p = 1; p < activation.pieces; ++p) {
            const size_t index = size_t(p) * activation.width + n;
            const V kink = broadcast(activation.breaks[index - activation.width]),
                    distance = kink - z;
            value = select<double>(
                z >= kink, activation.slopes[index] * z + activation.intercepts[index], value);
            // At the kink, or within the error of it, take the slope of the next piece.
            const Mask<double> on_kink = absolute<double>(distance) <= error;
            const Mask<double> right = (~on_kink & (z > kink)) | (on_kink & (slope > zero));
            factor = select<double>(right, broadcast(activation.slopes[index]), factor);
            next.consider(distance, slope, ~on_kink);
            const V overshoot = smaller<double>(top - kink, kink - bottom) + error;
            // The order of the arguments matters: NaN is kept.
            deviation_sum += penalties[k][size_t((p - 1) * net.layers[k].inputs + n)] *
                             larger<double>(zero, overshoot);
        }
        store_neuron(n, value, factor * slope);
    }

    // Do the same for the most common activation, with half the operations.
    void activate_relu(size_t k, int n, NearestKink& next, V& deviation_sum) {
        const V zero{};
        const double* x = block.at(n, 0);
        const V z = load(x), slope = load(x + lanes), last = load(&previous[k][size_t(n) * lanes]),
                error = broadcast((*errors)[k][n]);
        store(&current[k][size_t(n) * lanes], z);
        const Mask<double> on_kink = absolute<double>(z) <= error;
        const Mask<double> right = (z > error) | (on_kink & (slope > zero));
        next.consider(-z, slope, ~on_kink);
        const V overshoot =
            smaller<double>(larger<double>(z, last), -smaller<double>(z, last)) + error;
        deviation_sum += penalties[k][size_t(n)] * larger<double>(zero, overshoot);
        store_neuron(n, larger<double>(z, zero), select<double>(right, slope, zero));
    }

    void store_neuron(int n, V value, V slope) {
        store(block.at(n, 0), value);
        store(block.at(n, 1), slope);
        block.append_active_if(any<double>((value != V{}) | (slope != V{})), n);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

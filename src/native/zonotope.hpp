// Zonotope: bounds of the neurons over nodes of the lattice, center ± Σ generators ± box, one node
// per lane.
//
// The bounds are propagated forward through the layers. A single output can then be bounded again
// backward, by the linear relaxation of each activation. One generator per axis keeps the
// dependence on that axis; the box covers everything else, including the kernel's rounding errors.
// So the bounds hold for exact real arithmetic.
//
// This header declares the zonotope. Each direction has its own header: zonotope_forward.hpp and
// zonotope_backward.hpp.
#pragma once
#include "block.hpp"

namespace feta {
namespace FETA_ISA {

// An arithmetic whose rounding errors are propagated through the layers; see `gamma`.
struct TrackedArithmetic {
    double unit = 0, tiny = 0, huge = 0;
    int extra_roundings = 0, first_terms = 0;
};

constexpr int n_tracked = 2;  // the source's and the kernel's

// Largest absolute values before and after each activation; (layers, neurons, lanes).
template <class T> struct LargestValues {
    std::vector<Array<T>> before, after;
};

// Upper bounds of sign · output over nodes, one per lane: constant + Σ coefficient · value of a
// neuron of the first layer.
template <class T> struct LinearForm {
    static constexpr int lanes = lanes_of<T>;
    explicit LinearForm(int neurons)
        : active(size_t(neurons)), coefficients(size_t(neurons) * lanes) {}
    int n_active = 0;
    std::vector<int32_t> active;  // neurons
    Array<T> coefficients;        // (active neurons, lanes)
    alignas(64) T constants[lanes];
};

template <class T> class Zonotope {
  public:
    static constexpr int lanes = lanes_of<T>;
    using V = Vec<T>;

    explicit Zonotope(const Network<T>& network)
        : net(network), block(network.widest, network.axes + 2 + n_tracked),
          rows(size_t(2 * lanes) * network.width), base(3 * size_t(network.width)),
          differs(network.axes), inflation(upward<T>(network.axes + 2)),
          piecewise_rounding(T(
              gamma(Format<T>::unit, network.axes + piecewise_roundings, kernel_extra_roundings))) {
        for (const Layer<T>& layer : net.layers) {
            relaxations.emplace_back(4 * size_t(layer.inputs) * lanes);
            active_ids.emplace_back(size_t(layer.inputs));
        }
        n_active.assign(net.layers.size(), 0);
        largest_after.assign(net.layers.size(), V{});
        largest_before.assign(net.layers.size(), V{});
        first_layer.resize(size_t(net.width) * (network.axes + 2) * lanes);
        for (auto& row : coefficients) row.resize(size_t(network.widest) * lanes);
        for (const Layer<T>& layer : net.layers)
            kernel_rounding.push_back(
                rounding_of(layer, {Format<T>::unit, 0.0, HUGE_VAL, kernel_extra_roundings, 0},
                            network.axes + layer_flushes));
    }

    // Set the `n_tracked` arithmetics whose errors `bound_roots` propagates. The first is the
    // source's; only its overflow is checked.
    void track(const TrackedArithmetic* arithmetics) {
        for (int d = 0; d < n_tracked; ++d) {
            tracked[d] = arithmetics[d];
            tracked_rounding[d].clear();
            for (const Layer<T>& layer : net.layers)
                tracked_rounding[d].push_back(rounding_of(layer, arithmetics[d], point_flushes));
        }
    }

    int generators() const { return n_generators; }
    const T* center(int output) const { return block.at(output, 0); }
    const T* generator(int g, int output) const { return block.at(output, 1 + g); }
    const T* box(int output) const { return block.at(output, 1 + n_generators); }
    const T* error(int arithmetic, int output) const {
        return block.at(output, 2 + n_generators + arithmetic);
    }

    // Bounds of a single output.
    bool single_output() const { return net.outputs() == 1; }
    const T* low() const { return output_low; }
    const T* high() const { return output_high; }

    // Return whether the last activation is 0 everywhere in a node; then the outputs are exactly
    // the biases.
    bool constant(int lane) const { return all_zero[lane] != 0; }

    // Return the likely side of a single output per lane: 1 below the threshold, −1 above.
    V sides(double threshold) const {
        const V center = (load(output_low) + load(output_high)) / 2, one = broadcast(T(1));
        return select<T>(center < broadcast(T(threshold)), one, -one);
    }

    // Bound the outputs over nodes of one person's lattice; ids are (count, axes). With `Backward`,
    // also store what `tighten` needs.
    template <bool Backward>
    void bound_nodes(const T* person, const T* person_box, const int32_t* ids, int count);

    // Bound the outputs over the whole lattices of several people, with the errors of the tracked
    // arithmetics and the largest values. people, boxes and magnitudes are (lanes, width).
    void bound_roots(const T* people, const T* boxes, const T* magnitudes,
                     const T* cancelled_magnitude, LargestValues<T>& largest_values);

    // Bound a single output of the nodes again, backward: more expensive, and tighter for large
    // nodes. Each lane is bounded on one side: from above if its sign is 1, from below if it is −1.
    void tighten(V signs);

    // Bound sign · output of the nodes by forms that hold for every counterpart, and remain upper
    // bounds if they are evaluated in format T. `person_box` is the box of the person's center,
    // `magnitudes` bounds the sums of absolute terms of each neuron.
    void linear_form(V signs, const T* person_box, const T* magnitudes, LinearForm<T>& out);

  private:
    const Network<T>& net;
    Block<T> block;
    Array<T> rows, base;           // (2 · lanes, width): centers and boxes; (3, width): common part
    std::vector<uint8_t> differs;  // by axis: whether the nodes differ there
    T inflation;                   // covers the rounding of sums over axes
    T piecewise_rounding;          // of an activation other than a ReLU (lemmas 7 and 23)
    int n_generators = 0;

    // Constants of the rounding errors of one arithmetic in one layer, rounded up.
    struct LayerRounding {
        T rounding = 0, activation = 0, tiny = 0, overflow = 0;
        Array<T> bias;  // (outputs): γ · |bias|, and underflow
    };
    std::vector<LayerRounding> kernel_rounding, tracked_rounding[n_tracked];  // by layer
    TrackedArithmetic tracked[n_tracked];
    V box_sum{}, error_sums[n_tracked]{};  // over the inputs of the current layer

    // For the backward pass, by layer: slope and intercept of each activation's line above and line
    // below, the active neurons, and the largest value after the activation.
    std::vector<Array<T>> relaxations;  // (inputs, 4, lanes)
    std::vector<std::vector<int32_t>> active_ids;
    std::vector<int32_t> n_active;
    std::vector<V, CacheAligned<V>> largest_after;
    std::vector<V, CacheAligned<V>> largest_before;  // before the activation
    Array<T> first_layer;      // (neurons, rows, lanes): input of the first activation
    Array<T> coefficients[2];  // (neurons, lanes)
    alignas(64) T output_low[lanes], output_high[lanes];
    Mask<T> overflowed{}, all_zero{};

    // `flushes`: absolute errors per term of an output.
    static LayerRounding rounding_of(const Layer<T>& layer, const TrackedArithmetic& arithmetic,
                                     double flushes) {
        const double g = gamma(arithmetic.unit, layer.inputs, arithmetic.extra_roundings),
                     tiny = std::max(arithmetic.tiny, Format<T>::tiny);
        LayerRounding out;
        out.rounding = T(g * to_float32);
        out.activation = T(gamma(arithmetic.unit, 1, arithmetic.extra_roundings) * to_float32);
        out.tiny = T(tiny);
        out.overflow = T(g * arithmetic.huge);
        for (int o = 0; o < layer.outputs; ++o)
            out.bias.push_back(
                T((g * layer.bias_magnitudes64[o] + flushes * (layer.inputs + 1) * tiny) *
                  to_float32));
        return out;
    }

    // Inputs, in zonotope_inputs.hpp.
    T first_rounding() const;
    void load_nodes(const T* person, const T* person_box, const int32_t* ids, int count);
    void fill_row(const T* from, int row);
    void load_roots(const T* people, const T* boxes, const T* magnitudes,
                    const T* cancelled_magnitude);

    // Forward, in zonotope_forward.hpp.
    template <bool Root, bool Backward> void activate(size_t k, LargestValues<T>* largest_values);
    template <bool Root, bool Backward, int G>
    __attribute__((noinline)) void activate_generators(size_t k, LargestValues<T>* largest_values);
    __attribute__((always_inline)) void activate_piecewise(const Activation<T>& activation, int n,
                                                           T* x, V& c, V& b, V& generator_sum,
                                                           V radius, V& slope_out,
                                                           V& intercept_above, V& intercept_below);
    static void smooth_error(const Smooth<T>& smooth, int arithmetic, V& value, V& error);
    template <bool Root> void affine(size_t k);
    void bound_single_output();

    // Backward, in zonotope_backward.hpp.
    V backward(V signs);
    T* relax_backward(V signs, V& constant, V& error_scale, int& terms);
    void activate_backward(size_t k, T* current, V& constant, V& error_scale);
    void affine_backward(size_t k, const T* current, T* next);
};

}  // namespace FETA_ISA
}  // namespace feta

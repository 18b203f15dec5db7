// Block: values of all neurons in rows of lanes, and the product of a layer with them.
//
// A row is one vector of lanes: the values of several counterparts, or one component of the bounds
// of several nodes. The next product skips neurons that are zero in all lanes.
#pragma once
#include <type_traits>

#include "network.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> class Block {
  public:
    static constexpr int lanes = lanes_of<T>;

    Block(int neurons, int max_rows)
        : stride(max_rows * lanes), current(size_t(neurons) * stride), next(current.size()),
          active_ids(size_t(neurons)) {}

    T* at(int neuron, int row) { return &current[size_t(neuron) * stride + size_t(row) * lanes]; }
    const T* at(int neuron, int row) const {
        return &current[size_t(neuron) * stride + size_t(row) * lanes];
    }
    size_t neuron_stride() const { return size_t(stride); }  // from one neuron to the next

    void clear_active() { active_count = 0; }
    void append_active_if(bool is_active, int neuron) {  // branch-free
        active_ids[active_count] = neuron;
        active_count += is_active;
    }
    int active(int k) const { return active_ids[k]; }
    int n_active() const { return active_count; }

    // Replace the first `rows` rows by W · row, and the next `absolute_rows` (0, 1 or 3) rows by
    // |W| · row.
    void multiply(const Layer<T>& layer, int rows, int absolute_rows) {
        multiply_chunks<Plain>(layer, rows);
        if (absolute_rows == 3) multiply_rows<3, 4, Plain>(layer, layer.magnitudes.data(), rows);
        if (absolute_rows == 1) multiply_rows<1, 8, Plain>(layer, layer.magnitudes.data(), rows);
        current.swap(next);
    }

    // Replace all rows by W · row + b; with `relu`, by max(0, W · row + b).
    void apply_layer(const Layer<T>& layer, int rows, bool relu) {
        if (relu)
            multiply_chunks<Relu>(layer, rows);
        else
            multiply_chunks<Biased>(layer, rows);
        current.swap(next);
        if (relu) find_active(layer.outputs, rows);
    }

    void activate_all(int neurons) {
        clear_active();
        for (int n = 0; n < neurons; ++n) append_active_if(true, n);
    }

    // Mark the neurons active that are nonzero in some lane.
    void find_active(int neurons, int rows) {
        clear_active();
        for (int n = 0; n < neurons; ++n) {
            const T* x = at(n, 0);
            Mask<T> bits{};
            for (int r = 0; r < rows; ++r) bits |= (Mask<T>)load(x + r * lanes);
            active_ids[active_count] = n;
            active_count += any<T>(bits << 1);  // drops the sign: −0.0 is zero
        }
    }

  private:
    struct Plain {};   // W · row
    struct Biased {};  // W · row + b
    struct Relu {};    // max(0, W · row + b)

    int stride;
    Array<T> current, next;
    std::vector<int32_t> active_ids;
    int active_count = 0;

    template <class Kind> void multiply_chunks(const Layer<T>& layer, int rows) {
        int row = 0;
        for (; row + 4 <= rows; row += 4)
            multiply_rows<4, 2, Kind>(layer, layer.columns.data(), row);
        if (rows - row == 3) multiply_rows<3, 4, Kind>(layer, layer.columns.data(), row);
        if (rows - row == 2) multiply_rows<2, 4, Kind>(layer, layer.columns.data(), row);
        if (rows - row == 1) multiply_rows<1, 8, Kind>(layer, layer.columns.data(), row);
    }

    template <int K, int O, class Kind>
    __attribute__((noinline)) void multiply_rows(const Layer<T>& layer, const T* weights, int row) {
        int o = 0;
        for (; o + O <= layer.outputs; o += O) accumulate<K, O, Kind>(layer, weights + o, row, o);
        if constexpr (O > 2)
            for (; o + 2 <= layer.outputs; o += 2)
                accumulate<K, 2, Kind>(layer, weights + o, row, o);
        for (; o < layer.outputs; ++o) accumulate<K, 1, Kind>(layer, weights + o, row, o);
    }

    template <int K, int O, class Kind>
    __attribute__((always_inline)) inline void accumulate(const Layer<T>& layer, const T* weights,
                                                          int row, int first) {
        Vec<T> sum[O][K] = {};
        if constexpr (!std::is_same_v<Kind, Plain>)
            for (int o = 0; o < O; ++o)
                for (int r = 0; r < K; ++r) sum[o][r] = broadcast(layer.bias[first + o]);
        const size_t value_stride = size_t(stride), weight_stride = size_t(layer.width);
        const T* in = current.data() + size_t(row) * lanes;
        for (const int32_t *neuron = active_ids.data(), *end = neuron + active_count; neuron != end;
             ++neuron) {
            const size_t i = size_t(*neuron);
            const T* w = weights + i * weight_stride;
            const T* x = in + i * value_stride;
            Vec<T> v[K];
            for (int r = 0; r < K; ++r) v[r] = load(x + r * lanes);
            for (int o = 0; o < O; ++o) {
                const Vec<T> weight = broadcast(w[o]);
                for (int r = 0; r < K; ++r) sum[o][r] += weight * v[r];
            }
        }
        T* out = next.data() + size_t(first) * value_stride + size_t(row) * lanes;
        for (int o = 0; o < O; ++o)
            for (int r = 0; r < K; ++r) {
                if constexpr (std::is_same_v<Kind, Relu>)
                    sum[o][r] = larger<T>(sum[o][r], Vec<T>{});
                store(out + size_t(o) * value_stride + r * lanes, sum[o][r]);
            }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

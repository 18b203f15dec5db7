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
#if defined(__AVX512F__)
        if (absolute_rows == 1 && rows % 2 == 1) {  // the last register holds a row of each kind
            multiply_chunks<LastAbsolute>(layer, rows + 1);
            current.swap(next);
            return;
        }
#endif
        multiply_chunks<Plain>(layer, rows);
        const T* magnitudes = layer.magnitude_panels.data();
        if (absolute_rows == 3) multiply_rows<Vec<T>, 3, 4, Plain>(layer, magnitudes, rows);
        if (absolute_rows == 1) multiply_rows<Vec<T>, 1, 8, Plain>(layer, magnitudes, rows);
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
    typedef T Wide __attribute__((vector_size(64)));
    struct Plain {};         // W · row
    struct Biased {};        // W · row + b
    struct Relu {};          // max(0, W · row + b)
    struct LastAbsolute {};  // W · row, but |W| · row for the very last one

    int stride;
    Array<T> current, next;
    std::vector<int32_t> active_ids;
    int active_count = 0;

    // Rows are multiplied in chunks whose sums fit in the registers. With AVX-512, a register holds
    // two rows: they are neighbors in memory, so each number is computed as with AVX2.
    // Return a weight for the first row of a register, and its absolute value for the second.
    static inline Wide second_absolute(T weight) {
        typedef typename Pack<T>::integer Bits __attribute__((vector_size(64)));
        constexpr int size = int(sizeof(Wide) / sizeof(T));
        Bits mask = ~Bits{};
        for (int l = size / 2; l < size; ++l)
            mask[l] = std::numeric_limits<typename Pack<T>::integer>::max();
        return (Wide)((Bits)(weight - Wide{}) & mask);
    }

    template <class Kind> void multiply_chunks(const Layer<T>& layer, int rows) {
        const T* weights = layer.panels.data();
        int row = 0;
#if defined(__AVX512F__)
        while (rows - row >= 2) {
            const int left = (rows - row) / 2,
                      pairs = left == 4 || left < 3 ? std::min(left, 2) : 3;
            if (row + 2 * pairs < rows && std::is_same_v<Kind, LastAbsolute>)
                multiply_pairs<Plain>(layer, row, pairs);
            else
                multiply_pairs<Kind>(layer, row, pairs);
            row += 2 * pairs;
        }
#else
        while (rows - row >= 2) {
            const int left = rows - row, count = left == 4 || left == 2 ? 2 : 3;
            if (count == 3) multiply_rows<Vec<T>, 3, 4, Kind>(layer, weights, row);
            if (count == 2) multiply_rows<Vec<T>, 2, 4, Kind>(layer, weights, row);
            row += count;
        }
#endif
        if constexpr (!std::is_same_v<Kind, LastAbsolute>)
            if (row < rows) multiply_rows<Vec<T>, 1, 8, Kind>(layer, weights, row);
    }

#if defined(__AVX512F__)
    template <class Kind> void multiply_pairs(const Layer<T>& layer, int row, int pairs) {
        const T* weights = layer.panels.data();
        if (pairs == 3) multiply_rows<Wide, 3, 8, Kind>(layer, weights, row);
        if (pairs == 2) multiply_rows<Wide, 2, 8, Kind>(layer, weights, row);
        if (pairs == 1) multiply_rows<Wide, 1, 8, Kind>(layer, weights, row);
    }
#endif

    // Compute K registers of rows, for O outputs at a time.
    template <class V, int K, int O, class Kind>
    __attribute__((noinline)) void multiply_rows(const Layer<T>& layer, const T* weights, int row) {
        int o = 0;
        for (; o + O <= layer.outputs; o += O) accumulate<V, K, O, Kind>(layer, weights, row, o);
        if constexpr (O > 2)
            for (; o + 2 <= layer.outputs; o += 2)
                accumulate<V, K, 2, Kind>(layer, weights, row, o);
        for (; o < layer.outputs; ++o) accumulate<V, K, 1, Kind>(layer, weights, row, o);
    }

    template <class V, int K, int O, class Kind>
    __attribute__((always_inline)) inline void accumulate(const Layer<T>& layer, const T* weights,
                                                          int row, int first) {
        constexpr int size = int(sizeof(V) / sizeof(T)), weight_stride = Layer<T>::panel_width;
        V sum[O][K] = {};
        constexpr bool last_absolute = std::is_same_v<Kind, LastAbsolute>;
        if constexpr (!std::is_same_v<Kind, Plain> && !last_absolute)
            for (int o = 0; o < O; ++o)
                for (int r = 0; r < K; ++r) sum[o][r] = layer.bias[first + o] - V{};
        const size_t value_stride = size_t(stride);
        const T* in = current.data() + size_t(row) * lanes;
        const T* panel = weights + layer.panel_index(0, first);
        for (const int32_t *neuron = active_ids.data(), *end = neuron + active_count; neuron != end;
             ++neuron) {
            const size_t i = size_t(*neuron);
            const T* w = panel + i * weight_stride;
            const T* x = in + i * value_stride;
            V v[K];
            for (int r = 0; r < K; ++r) std::memcpy(&v[r], x + r * size, sizeof(V));
            for (int o = 0; o < O; ++o) {
                for (int r = 0; r < K - last_absolute; ++r) sum[o][r] += w[o] * v[r];
                if constexpr (last_absolute) sum[o][K - 1] += second_absolute(w[o]) * v[K - 1];
            }
        }
        T* out = next.data() + size_t(first) * value_stride + size_t(row) * lanes;
        for (int o = 0; o < O; ++o)
            for (int r = 0; r < K; ++r) {
                if constexpr (std::is_same_v<Kind, Relu>)
                    sum[o][r] = sum[o][r] > V{} ? sum[o][r] : V{};
                std::memcpy(out + size_t(o) * value_stride + r * size, &sum[o][r], sizeof(V));
            }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

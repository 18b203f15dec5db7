// Block: every neuron's values in rows of lanes, and the product of a layer with all of them.
//
// A row is one vector of lanes: eight counterparts' values, or one part of eight nodes' bounds.
// Neurons that are zero in all lanes are left out of the next product.
#pragma once
#include <type_traits>

#include "network.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> class Block {
  public:
    static constexpr int lanes = lanes_of<T>;

    Block(int neurons, int most_rows)
        : stride(most_rows * lanes), now(size_t(neurons) * stride), next(now.size()),
          alive(size_t(neurons)) {}

    T* at(int neuron, int row) { return &now[size_t(neuron) * stride + size_t(row) * lanes]; }
    const T* at(int neuron, int row) const {
        return &now[size_t(neuron) * stride + size_t(row) * lanes];
    }
    size_t step() const { return size_t(stride); }  // from one neuron to the next

    void begin_alive() { n_alive = 0; }
    void keep_alive_if(bool lives, int neuron) {  // without a branch
        alive[n_alive] = neuron;
        n_alive += lives;
    }
    int living(int k) const { return alive[k]; }
    int n_living() const { return n_alive; }

    // The first rows become W · rows, the following `absolute_rows` |W| · rows.
    void multiply(const Layer<T>& layer, int rows, int absolute_rows) {
        chunks<Plain>(layer, rows);
        if (absolute_rows == 3) outputs<3, 4, Plain>(layer, layer.sizes.data(), rows);
        if (absolute_rows == 1) outputs<1, 8, Plain>(layer, layer.sizes.data(), rows);
        now.swap(next);
    }

    // All rows become W · rows + b; with `relu`, what is positive of it.
    void step_points(const Layer<T>& layer, int rows, bool relu) {
        if (relu)
            chunks<Relu>(layer, rows);
        else
            chunks<Biased>(layer, rows);
        now.swap(next);
        if (relu) find_alive(layer.outputs, rows);
    }

    // Let the neurons live that are not zero in every lane.
    void find_alive(int neurons, int rows) {
        begin_alive();
        for (int n = 0; n < neurons; ++n) {
            const T* x = at(n, 0);
            Mask<T> bits{};
            for (int r = 0; r < rows; ++r) bits |= (Mask<T>)load(x + r * lanes);
            alive[n_alive] = n;
            n_alive += any<T>(bits << 1);  // the sign of zero does not count
        }
    }

  private:
    struct Plain {};   // W · rows
    struct Biased {};  // W · rows + b
    struct Relu {};    // max(0, W · rows + b)

    int stride;
    Array<T> now, next;
    std::vector<int32_t> alive;
    int n_alive = 0;

    template <class Kind> void chunks(const Layer<T>& layer, int rows) {
        int row = 0;
        for (; row + 4 <= rows; row += 4) outputs<4, 2, Kind>(layer, layer.columns.data(), row);
        if (rows - row == 3) outputs<3, 4, Kind>(layer, layer.columns.data(), row);
        if (rows - row == 2) outputs<2, 4, Kind>(layer, layer.columns.data(), row);
        if (rows - row == 1) outputs<1, 8, Kind>(layer, layer.columns.data(), row);
    }

    template <int K, int O, class Kind>
    __attribute__((noinline)) void outputs(const Layer<T>& layer, const T* weights, int row) {
        int o = 0;
        for (; o + O <= layer.outputs; o += O) sums<K, O, Kind>(layer, weights + o, row, o);
        if constexpr (O > 2)
            for (; o + 2 <= layer.outputs; o += 2) sums<K, 2, Kind>(layer, weights + o, row, o);
        for (; o < layer.outputs; ++o) sums<K, 1, Kind>(layer, weights + o, row, o);
    }

    template <int K, int O, class Kind>
    __attribute__((always_inline)) inline void sums(const Layer<T>& layer, const T* weights,
                                                    int row, int first) {
        Vec<T> sum[O][K] = {};
        if constexpr (!std::is_same_v<Kind, Plain>)
            for (int o = 0; o < O; ++o)
                for (int r = 0; r < K; ++r) sum[o][r] = spread(layer.bias[first + o]);
        const size_t width = size_t(stride), wide = size_t(layer.width);
        const T* in = now.data() + size_t(row) * lanes;
        for (const int32_t *one = alive.data(), *end = one + n_alive; one != end; ++one) {
            const size_t i = size_t(*one);
            const T* w = weights + i * wide;
            const T* x = in + i * width;
            Vec<T> v[K];
            for (int r = 0; r < K; ++r) v[r] = load(x + r * lanes);
            for (int o = 0; o < O; ++o) {
                const Vec<T> weight = spread(w[o]);
                for (int r = 0; r < K; ++r) sum[o][r] += weight * v[r];
            }
        }
        T* to = next.data() + size_t(first) * width + size_t(row) * lanes;
        for (int o = 0; o < O; ++o)
            for (int r = 0; r < K; ++r) {
                if constexpr (std::is_same_v<Kind, Relu>)
                    sum[o][r] = larger<T>(sum[o][r], Vec<T>{});
                store(to + size_t(o) * width + r * lanes, sum[o][r]);
            }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Inputs of a zonotope: the first layer's neurons over nodes of one person's lattice, or over the
// whole lattices of several people.
#pragma once
#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

template <class T> inline T Zonotope<T>::first_rounding() const {
    return T(gamma(Format<T>::unit, net.axes + 2, kernel_extra_roundings));
}

template <class T> inline void Zonotope<T>::load_nodes(const T* person, const T* person_box,
                                                       const int32_t* ids, int count) {
    const int width = net.width, axes = net.axes;
    T *center = base.data(), *magnitude = center + width, *box = magnitude + width;
    std::copy_n(person, width, center);
    std::copy_n(person_box, width, box);
    for (int n = 0; n < width; n += lanes) store(magnitude + n, absolute<T>(load(center + n)));
    n_generators = 0;
    const T* pointers[lanes];
    for (int a = 0; a < axes; ++a) {
        const AxisTree<T>& tree = net.trees[a];
        bool same = true, varies = tree.real;
        for (int l = 0; l < count; ++l) {
            const int32_t id = ids[size_t(l) * axes + a];
            same &= id == ids[a];
            varies |= tree.count(id) > 1;
        }
        differs[a] = !same;
        if (same) {
            const size_t at = size_t(ids[a]) * width;
            for (int n = 0; n < width; n += lanes) {
                const V c = load(&tree.center[at + n]);
                store(center + n, load(center + n) + c);
                store(magnitude + n, load(magnitude + n) + absolute<T>(c));
                store(box + n, load(box + n) + load(&tree.rest[at + n]));
            }
        }
        if (!varies) continue;
        T* to = block.at(0, 1 + n_generators++);
        if (same)
            for (int n = 0; n < net.neurons; ++n)
                store(to + n * block.neuron_stride(),
                      broadcast(tree.generator[size_t(ids[a]) * width + n]));
        else {
            for (int l = 0; l < lanes; ++l)
                pointers[l] =
                    &tree.generator[size_t(ids[size_t(l < count ? l : 0) * axes + a]) * width];
            for (int n = 0; n < width; n += lanes)
                transpose(pointers, n, to + n * block.neuron_stride(), block.neuron_stride());
        }
    }
    const T rounding = first_rounding();
    for (int l = 0; l < lanes; ++l) {
        const int32_t* node_ids = ids + size_t(l < count ? l : 0) * axes;
        T *to = &rows[size_t(l) * width], *to_box = &rows[size_t(lanes + l) * width];
        for (int n = 0; n < width; n += lanes) {
            V m = load(center + n), s = load(magnitude + n), w = load(box + n);
            for (int a = 0; a < axes; ++a)
                if (differs[a]) {
                    const size_t at = size_t(node_ids[a]) * width + n;
                    const V c = load(&net.trees[a].center[at]);
                    m += c;
                    s += absolute<T>(c);
                    w += load(&net.trees[a].rest[at]);
                }
            store(to + n, m);
            store(to_box + n, (w + rounding * s) * inflation);
        }
    }
    fill_row(rows.data(), 0);
    fill_row(&rows[size_t(lanes) * width], 1 + n_generators);
}

// Transpose `lanes` rows of neurons into one row of the block.
template <class T> inline void Zonotope<T>::fill_row(const T* from, int row) {
    const T* pointers[lanes];
    for (int l = 0; l < lanes; ++l) pointers[l] = from + size_t(l) * net.width;
    for (int n = 0; n < net.width; n += lanes)
        transpose(pointers, n, block.at(n, row), block.neuron_stride());
}

template <class T> inline void Zonotope<T>::load_roots(const T* people, const T* boxes,
                                                       const T* magnitudes,
                                                       const T* cancelled_magnitude) {
    const TrackedArithmetic* arithmetics = tracked;
    n_generators = net.axes;
    fill_row(people, 0);
    fill_row(boxes, 1 + n_generators);
    fill_row(magnitudes, 2 + n_generators);
    const T rounding = first_rounding();
    overflowed = Mask<T>{};
    T first_relative[n_tracked], first_tiny[n_tracked];
    for (int d = 0; d < n_tracked; ++d) {
        const double g =
            gamma(arithmetics[d].unit, arithmetics[d].first_terms, arithmetics[d].extra_roundings);
        first_relative[d] = T(
            (g + gamma(Format<double>::unit, arithmetics[0].first_terms, kernel_extra_roundings)) *
            to_float32);
        first_tiny[d] = T(point_flushes * (arithmetics[0].first_terms + 1) *
                          std::max(arithmetics[d].tiny, Format<T>::tiny));
    }
    for (int n = 0; n < net.neurons; ++n) {
        V c = load(block.at(n, 0)), magnitude = absolute<T>(c),
          box = load(block.at(n, 1 + n_generators));
        for (int a = 0; a < net.axes; ++a) {
            const AxisTree<T>& tree = net.trees[a];
            const V center = broadcast(tree.center[n]);
            c += center;
            magnitude += absolute<T>(center);
            box += broadcast(tree.rest[n]);
            store(block.at(n, 1 + a), broadcast(tree.generator[n]));
        }
        store(block.at(n, 0), c);
        store(block.at(n, 1 + n_generators), (box + rounding * magnitude) * inflation);
        const V terms = load(block.at(n, 2 + n_generators)) + broadcast(cancelled_magnitude[n]);
        overflowed |= ~(terms < broadcast(T(arithmetics[0].huge)));
        for (int d = 0; d < n_tracked; ++d)
            store(block.at(n, 2 + n_generators + d),
                  (terms * first_relative[d] + first_tiny[d]) * inflation);
    }
}

}  // namespace FETA_ISA
}  // namespace feta

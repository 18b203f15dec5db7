// Tree: the values of one attribute, recursively split in two, in float64.
//
// Each node bounds the first-layer terms of its values as center ± generator ± rest. The generator
// is the direction in which the values differ most, weighted by the importance of each neuron.
#pragma once
#include <vector>

#include "spec.hpp"

namespace feta {

struct Tree {
    int neurons = 0;
    std::vector<int32_t> order;                   // the values in leaf order
    std::vector<int32_t> begin, end;              // (nodes): range of `order`
    std::vector<int32_t> left, right;             // (nodes): children, −1 at a leaf
    std::vector<double> center, generator, rest;  // (nodes, neurons)
    std::vector<double> weight;                   // (nodes): expected gain of a split
    int nodes() const { return int(begin.size()); }
};

// Return where the k-th piece of the range of a real-valued attribute begins.
static inline double edge(const AxisSpec& axis, int k) {
    return k == axis.values ? axis.high
                            : axis.low + (axis.high - axis.low) * (k / double(axis.values));
}

// Return the trees of all attributes. The result does not depend on the instruction set.
std::vector<Tree> build_trees(const ModelSpec& model);

// Return the tree of one attribute; `importance` weights the neurons.
Tree build_tree(const AxisSpec& axis, const std::vector<double>& importance);

}  // namespace feta

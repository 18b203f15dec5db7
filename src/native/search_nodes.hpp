// Nodes of a search: their counterparts and their children.
#pragma once
#include "search.hpp"

namespace feta {
namespace FETA_ISA {

inline uint64_t Search::count_of(const int32_t* node) const {
    uint64_t count = 1;
    for (int a = 0; a < axes; ++a) count *= uint64_t(net32.trees[a].count(node[a]));
    return count;
}

inline uint64_t Search::assignment_id_of(const int32_t* point_coordinates) const {
    uint64_t assignment_id = 0;
    for (int a = 0; a < axes; ++a) assignment_id += strides[a] * uint64_t(point_coordinates[a]);
    return assignment_id;
}

inline void Search::set_coordinates(uint64_t assignment_id) {
    for (int a = 0; a < axes; ++a)
        coordinates[a] = int32_t(assignment_id / strides[a] % uint64_t(spec.axes[a].values));
}

inline void Search::pop_first() {
    std::copy_n(frontier.first(), axes, ids.begin());
    frontier.pop();
}

// Split the node in `ids` recursively into at most `lanes` children; return their number.
inline int Search::split() {
    std::copy_n(ids.begin(), axes, children.begin());
    int n_children = 1;
    while (2 * n_children <= lanes) {
        int axis = -1;
        double largest = -1;
        for (int a = 0; a < axes; ++a) {
            const AxisTree<float>& tree = net32.trees[a];
            double weight = -1;
            for (int m = 0; m < n_children; ++m) {
                const int32_t id = children[size_t(m) * axes + a];
                if (tree.left[id] >= 0) weight = std::max(weight, tree.weight[id]);
            }
            if (weight > largest) largest = weight, axis = a;
        }
        if (axis < 0) break;
        const AxisTree<float>& tree = net32.trees[axis];
        const int n_parents = n_children;
        for (int m = 0; m < n_parents; ++m) {
            int32_t* child = &children[size_t(m) * axes];
            const int32_t parent = child[axis];
            if (tree.left[parent] < 0) continue;
            int32_t* sibling = &children[size_t(n_children++) * axes];
            std::copy_n(child, axes, sibling);
            child[axis] = tree.left[parent];
            sibling[axis] = tree.right[parent];
        }
    }
    return n_children;
}

// Push the halves of the node in `ids` to the stack, split along the axis with most values.
inline void Search::push_halves() {
    int axis = 0;
    for (int a = 1; a < axes; ++a)
        if (net32.trees[a].count(ids[a]) > net32.trees[axis].count(ids[axis])) axis = a;
    const int32_t parent = ids[axis];
    for (const int32_t child : {net32.trees[axis].right[parent], net32.trees[axis].left[parent]}) {
        ids[axis] = child;
        stack.insert(stack.end(), ids.begin(), ids.end());
    }
}

}  // namespace FETA_ISA
}  // namespace feta

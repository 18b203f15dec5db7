// ForestRows: the leaf that each person reaches in each tree.
#pragma once
#include <cstdint>
#include <vector>

namespace feta {
namespace forest {

// A node as Python stores it; `source` is the column of a number, or the index of a domain.
struct RowNode {
    double cut = 0;
    int64_t source = 0, flag = -1, start = 0, left = 0, right = 0;
    uint8_t kind = 0;  // leaf, number or member
    uint8_t missing_left = 0;
};

struct ForestRows {
    static constexpr uint8_t leaf = 0, number = 1;
    int64_t width = 0, domains = 0;
    std::vector<int64_t> roots;
    std::vector<RowNode> nodes;
    std::vector<uint8_t> members;

    // Write one leaf per tree; return false if an index of a domain is invalid.
    bool leaves_of(const double* person, const int64_t* indices, int64_t* leaves) const {
        for (size_t tree = 0; tree < roots.size(); ++tree) {
            int64_t at = roots[tree];
            while (nodes[size_t(at)].kind != leaf) {
                const RowNode& node = nodes[size_t(at)];
                bool left;
                if (node.kind == number) {
                    left = person[node.source] <= node.cut;  // false for NaN
                    if (node.flag >= 0 && person[node.flag] == 1.0) left = node.missing_left;
                } else {
                    const auto entry = size_t(node.start + indices[node.source]);
                    if (entry >= members.size()) return false;
                    left = members[entry];
                }
                at = left ? node.left : node.right;
            }
            leaves[tree] = at;
        }
        return true;
    }
};

}  // namespace forest
}  // namespace feta

// ForestSpec: a tree ensemble as Python passes it, for one space.
//
// Leaf values are integers: multiples of one unit, so that sums are exact. A sensitive attribute is
// an axis. Its values are grouped: no node distinguishes two values of a group. A node on an axis
// has a mask, the groups that go left.
#pragma once
#include <cstdint>
#include <vector>

#include "spec.hpp"

namespace feta {
namespace forest {

using Wide = __int128;

// What a node tests: nothing, a shared number, a shared domain, or a sensitive axis.
enum class Test : uint8_t { leaf = 0, number = 1, member = 2, axis = 3 };

struct Node {
    double cut = 0;      // number: the largest one that goes left
    int32_t source = 0;  // leaf: its index; number: column; member: domain; axis: mask
    int32_t extra = -1;  // number: the column of its missing flag, or −1; member: first entry
    int32_t left = 0, right = 0;
    int16_t axis = 0;
    Test test = Test::leaf;
    uint8_t missing_left = 0;
};

// The values of a shared attribute: one-hot columns, or listed numbers and a missing flag.
struct Domain {
    int32_t column = 0, width = 0;
    int32_t flag = -1;
    std::vector<double> numbers;  // empty for one-hot columns
};

struct Axis {
    bool ordered = false;                // whether most masks are runs of groups
    std::vector<uint64_t> sizes, first;  // by group: the number of values, and the lowest index
    uint64_t stride = 1;                 // of the value in assignment ids
    size_t words = 1;
    std::vector<uint64_t> masks;  // (masks, words)
    int groups() const { return int(sizes.size()); }
    size_t n_masks() const { return masks.size() / words; }
    const uint64_t* mask(size_t number) const { return &masks[number * words]; }
};

// The valid values of shared columns. One-hot columns form groups, of which one column is 1.
struct Limit {
    int32_t column = 0, group = -1;
    double low = 0, high = 0;
    bool integer = false;
};

// How the library adds, for the label of the runtime.
struct Replay {
    bool single = false, divide = false;  // float32; divide in that format, too
    std::vector<double> terms;            // (leaves, sums): what it adds
    std::vector<double> sizes;            // (leaves, sums): the absolute leaf values
    std::vector<double> start;            // (sums)
    std::vector<double> base_sizes;       // (sums)
    std::vector<double> directions;       // (outputs, sums)
    double denominator = 1;
    double relative_error = 0;  // of a score in float64, relative to the sizes of its terms
};

struct ForestSpec {
    int columns = 0, outputs = 1, sums = 1;
    bool wide = false;         // whether sums need 128 bits
    size_t max_set_bytes = 0;  // of sets of leaves; larger ensembles are followed tree by tree
    std::vector<int32_t> roots;
    std::vector<Node> nodes;
    std::vector<Domain> domains;
    std::vector<uint8_t> members;
    std::vector<Limit> limits;  // columns of a group are adjacent; empty: rows are not checked
    std::vector<Axis> axes;
    std::vector<Wide> leaves;  // (leaves, outputs), in units
    std::vector<Wide> base;    // (outputs)
    double unit = 1;           // the score of one unit, rounded
    Replay replay;
    RuleSpec rule;
    // Threshold: the least sum above it, and the sums beyond which the runtime surely agrees.
    Wide least_above = 0, surely_below = 0, surely_above = 0;
    Wide sure_gap = 0;        // argmax: the runtime surely agrees if the winner leads by more
    double source_error = 0;  // further error at the threshold, of a sigmoid; inf: overflow
};

}  // namespace forest
}  // namespace feta

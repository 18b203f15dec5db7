// A proof about a box of people: what it needs to know of a network, and its contract. The readable
// version is feta/everybody/half_spaces; docs/explanation/rounding.md proves both (lemmas 25 to 28).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace feta {

// An axis of people: integers or real numbers with a slope, or a table of first-layer terms.
struct BranchAxis {
    enum Kind { line, real, table } kind = line;
    std::vector<double> rows;   // the slope, or one row per value
    double start = 0;           // the number of the first integer
    double low = 0, high = 0;   // the coordinates that have a share
    std::vector<int64_t> ends;  // cumulative weights of the values, from 0; none for real numbers
    bool uniform = true;        // all weights between `low` and `high` are equal
    std::vector<int32_t> next, previous;  // the next and the previous value with a weight
};

struct BranchActivation {
    bool relu = false;
    size_t pieces = 1, width = 1;  // a width of 1 stands for all neurons
    std::vector<double> breaks, slopes, intercepts;
};

struct BranchLayer {
    size_t inputs = 0, outputs = 0;
    std::vector<double> weight, bias;
};

struct BranchSpec {
    std::vector<double> constant;  // of the first layer
    std::vector<BranchAxis> axes;
    size_t combinations = 1;  // of sensitive values
    std::vector<double> combination_rows;
    std::vector<BranchActivation> activations;
    std::vector<BranchLayer> layers;
    double threshold = 0;
    std::vector<std::vector<double>> sizes, errors;  // per layer

    size_t neurons() const { return constant.size(); }
};

// Constants of a search; Python passes them.
struct BranchOptions {
    double few = 16;  // people of a box that is enumerated
    int least_bins = 7, most_bins = 14;
    double usual_bins = 128, joint_above = 0.5;
};

struct BranchBox {
    std::vector<double> low, high;
};

struct BranchShares {
    double fair = 0, unfair = 0;
};

// A number times 2^-120, in two words.
struct BranchSum {
    uint64_t high = 0, low = 0;
};

struct BranchNode {
    int32_t parent = -1, child = -1;
    int16_t axis = -1;
    uint8_t code = 0;
};

// A box whose people are to be decided exactly.
struct BranchHard {
    int32_t node = -1;
    BranchBox box;
};

class Branch {
  public:
    virtual ~Branch();
    virtual void step(double seconds) = 0;
    virtual bool done() const = 0;
    virtual uint64_t boxes() const = 0;
    virtual BranchSum not_fair() const = 0;  // an upper bound
    virtual BranchSum unfair() const = 0;    // a lower bound
    virtual const std::vector<BranchNode>& nodes() const = 0;
    virtual std::vector<BranchBox> draw(const double* uniform, size_t count) const = 0;
    virtual std::vector<BranchHard> take_hard() = 0;
    virtual void settle(int32_t node, BranchShares shares) = 0;
    virtual const BranchBox* witness() const = 0;  // somebody in it is treated unfairly
    virtual BranchShares examine(const BranchBox& box, bool each, int bins) = 0;
};

// The specification must outlive the search.
std::unique_ptr<Branch> make_branch_portable(const BranchSpec& spec, const BranchOptions& options);
std::unique_ptr<Branch> make_branch_avx2(const BranchSpec& spec, const BranchOptions& options);

}  // namespace feta

// Compiled once, in branch_module.cpp: the files of two instruction sets share no symbol.
extern template class std::vector<feta::BranchBox>;
extern template class std::vector<feta::BranchHard>;

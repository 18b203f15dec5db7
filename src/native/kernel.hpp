// Kernel: interface for queries about many people at once, on several threads. There is one
// implementation per instruction set.
#pragma once
#include <memory>
#include <vector>

#include "spec.hpp"
#include "tree.hpp"

namespace feta {

// One row per person; `Outcome` in search.hpp describes the fields.
struct Results {
    Results();
    Results(Results&&) noexcept;
    Results& operator=(Results&&) noexcept;
    ~Results();
    size_t classes = 2;
    std::vector<uint64_t> counts;  // (people, classes)
    std::vector<uint8_t> runtime_safe, finished, has_match;
    std::vector<uint64_t> assignment_id, bounded_nodes, scored_points;
    std::vector<std::vector<uint64_t>> undecided_ids;         // need exact arithmetic
    std::vector<double> real_value, best_score, upper_bound;  // for a real-valued attribute
};

// Contribution of the shared columns to each first-layer neuron, and the sum of the absolute terms;
// (people, neurons).
struct People {
    const double* constants = nullptr;
    const double* magnitudes = nullptr;
    size_t count = 0;
};

// A weighted subset of the lattice.
struct ListedAssignments {
    std::vector<uint64_t> assignment_ids, votes;
    uint64_t total_votes = 0;
};

// Objectives that `worst` maximizes; `kind` selects one per person.
struct Objectives {
    int rows = 0;
    const double* directions = nullptr;  // (kinds, rows, outputs)
    const double* offsets = nullptr;     // (people, rows)
    const int32_t* kind = nullptr;       // (people)
    const double* floors = nullptr;      // (people): smaller values do not matter
    bool approximate = false;            // a nearly worst counterpart suffices
    bool smallest = false;               // of the rows; otherwise their largest
};

struct Options {
    bool majority = false;
    double seconds = -1;                  // for all people together; negative: no limit
    uint64_t nodes = 0, evaluations = 0;  // per person, 0: no limit; see `Limits`
    int threads = 1;
};

// A vote by the mean of contributions: grades of the score, or without thresholds the score itself.
struct MeanSpec {
    std::vector<uint64_t> assignment_ids, votes;
    std::vector<double> thresholds, grades;  // ascending; one grade more, integers
    bool above = true;                       // favorable sums are at least, otherwise at most,
    double edge = 0;                         // this one
};

// A vote in the format of one kernel.
class MeanVote {
  public:
    virtual ~MeanVote();
};

// For tests of the error bounds: what the kernel proves and computes for one person.
struct NodeBounds {
    NodeBounds();
    NodeBounds(NodeBounds&&) noexcept;
    NodeBounds& operator=(NodeBounds&&) noexcept;
    ~NodeBounds();
    size_t outputs = 0;
    std::vector<double> low, high;                    // (nodes, outputs): of the scores
    std::vector<double> backward_low, backward_high;  // (nodes): of a single score
    // By node, of a single score: how many counterparts forms decide, and the ids of the others.
    std::vector<uint64_t> below, above;
    std::vector<std::vector<uint64_t>> not_below, not_above;
    std::vector<double> source_errors, errors32, errors64;  // (outputs): of scores at a point
    std::vector<double> scores32, scores64;                 // (points, outputs)
};

// Nodes and points of one person: tree nodes, and values, (count, axes).
struct NodesAndPoints {
    const int32_t* nodes = nullptr;
    size_t n_nodes = 0;
    const int32_t* points = nullptr;
    size_t n_points = 0;
};

class Kernel {
  public:
    virtual ~Kernel();
    virtual Results tally(const People&, const ListedAssignments*, const Options&) = 0;
    virtual Results find(const People&, const int32_t* reference, const double* centers,
                         double half, const Options&) = 0;
    virtual Results worst(const People&, const Objectives&, const Options&) = 0;
    virtual Results worst_real(const People&, const double* signs, const double* floors,
                               const Options&) = 0;

    // Write the majority class of each raw row: on a tie the first or the last class, and −1 where
    // the kernel cannot decide. Return false if a row may lie outside the space.
    virtual bool majority(const double* rows, size_t count, bool ties_to_last, const Options&,
                          int32_t* winners) = 0;

    // Decide each raw row by a mean: 1, 0, or −1 where the kernel cannot decide. Return false if a
    // row may lie outside the space.
    virtual std::unique_ptr<MeanVote> mean_vote(const MeanSpec&) = 0;
    virtual bool means(const double* rows, size_t count, const MeanVote&, const Options&,
                       int32_t* decisions) = 0;

    virtual NodeBounds node_bounds(const People& person, const NodesAndPoints&) = 0;
};

// kernel.inc is compiled once per instruction set; each copy defines one of these. Everything else
// is compiled once. A kernel refers to the model, which must outlive it; there is one tree per axis.
std::unique_ptr<Kernel> make_portable(const ModelSpec&, const Tree* trees);
std::unique_ptr<Kernel> make_avx2(const ModelSpec&, const Tree* trees);
std::unique_ptr<Kernel> make_avx512(const ModelSpec&, const Tree* trees);

}  // namespace feta

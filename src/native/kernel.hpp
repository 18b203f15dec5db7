// Kernel: many people's questions over threads; one implementation an instruction set.
#pragma once
#include <memory>
#include <vector>

#include "spec.hpp"

namespace feta {

struct Results {
    size_t classes = 2;
    std::vector<uint64_t> counts;  // (people, classes)
    std::vector<uint8_t> runtime_safe, finished, has_match;
    std::vector<uint64_t> assignment_id, bounded_nodes, scored_points;
    std::vector<std::vector<uint64_t>> undecided_ids;  // lattice numbers that need exact arithmetic
    std::vector<double> real_value, lower, upper;      // along a real-valued attribute
};

// What the shared columns add to each neuron, and the terms' sizes; (people, neurons).
struct People {
    const double* constants = nullptr;
    const double* magnitudes = nullptr;
    size_t count = 0;
};

struct ListedAssignments {
    std::vector<uint64_t> assignment_ids, votes;  // of lattice numbers
    uint64_t total_votes = 0;
};

// What `worst` maximises, each person with one of several objectives.
struct Objectives {
    int rows = 0;
    const double* directions = nullptr;  // (kinds, rows, outputs)
    const double* offsets = nullptr;     // (people, rows)
    const int32_t* kind = nullptr;       // (people)
    const double* floors = nullptr;      // (people): what is certainly less does not count
    bool approximate = false;            // nearly the worst will do
    bool smallest = false;
};

struct Options {
    bool majority = false;
    double seconds = -1;  // for all people together; below 0: no limit
    uint64_t nodes = 0, evaluations = 0;
    int threads = 1;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual Results tally(const People&, const ListedAssignments*, const Options&) = 0;
    virtual Results find(const People&, const int32_t* reference, const double* centers,
                         double half, const Options&) = 0;
    virtual Results worst(const People&, const Objectives&, const Options&) = 0;
    virtual Results worst_real(const People&, const double* signs, const double* floors,
                               const Options&) = 0;

    // Each raw row's majority, the first or the last class on a tie; −1 where it is not settled here.
    // False if a row may lie outside the space.
    virtual bool majority(const double* rows, size_t count, bool ties_to_last, const Options&,
                          int32_t* winners) = 0;
};

// Each instruction set compiles kernel.inc once, under its own name.
std::unique_ptr<Kernel> make_portable(const ModelSpec&);
std::unique_ptr<Kernel> make_avx2(const ModelSpec&);

}  // namespace feta

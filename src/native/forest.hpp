// Forest: interface for queries about many people at once, on several threads.
#pragma once
#include <memory>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

// Integers of any size as Python passes them: the high and the low 64 bits.
struct Pair {
    int64_t high = 0, low = 0;
};

struct Results {
    size_t classes = 2;
    std::vector<uint64_t> counts;  // (people, classes)
    std::vector<uint8_t> runtime_safe, finished, found;
    std::vector<uint64_t> assignment_id, cost;
    std::vector<std::vector<uint64_t>> candidates;
};

struct Options {
    double seconds = -1;  // for all people together; negative: no limit
    uint64_t evaluations = 0;
    int threads = 1;
};

// Rows of people; the sensitive columns are not read.
struct Rows {
    const double* data = nullptr;
    size_t count = 0;
};

struct Votes {
    std::vector<int32_t> groups;  // (listed, axes)
    std::vector<uint64_t> votes;
};

struct References {
    const int32_t* decisions = nullptr;
    const Pair* bands = nullptr;  // (people, 6), as in `Band`; only for a tolerance
    const double* centers = nullptr;
    double half = 0;
};

struct Objectives {
    int rows = 1;
    const double* directions = nullptr;  // (kinds, rows, outputs)
    const int32_t* kind = nullptr;       // by person
    const Pair* low = nullptr;           // (kinds, rows): offsets, rounded down
    const Pair* high = nullptr;          // rounded up
    const Pair* levels = nullptr;        // (kinds)
    const Pair* floors = nullptr;        // by person
    bool smallest = false;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual Results tally(const Rows&, const Votes*, bool majority, const Options&) = 0;
    // Decide by majority; return false if a row may lie outside the space.
    virtual bool majority(const Rows&, bool ties_to_last, int threads, int32_t* winners) = 0;
    virtual Results find(const Rows&, const References&, const Options&) = 0;
    virtual Results worst(const Rows&, const Objectives&, const Options&) = 0;
};

// Return a kernel whose sums have 64 or 128 bits.
std::unique_ptr<Kernel> make(ForestSpec spec);

}  // namespace forest
}  // namespace feta

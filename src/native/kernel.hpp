// Kernel: many people's questions over threads; one implementation an instruction set.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "spec.hpp"

namespace feta {

struct Answers {
    size_t classes = 2;
    std::vector<uint64_t> counts;      // (people, classes)
    std::vector<uint8_t> safe, finished, found;
    std::vector<uint64_t> number, bounded, scored;
    std::vector<std::vector<uint64_t>> open;  // lattice numbers that need exact arithmetic
};

struct People {
    const double* constants = nullptr;  // (people, neurons)
    const double* sizes = nullptr;
    size_t many = 0;
};

struct Listed {
    std::vector<int32_t> digits;  // (assignments, axes)
    std::vector<uint64_t> numbers, votes;
    uint64_t all_votes = 0;
};

struct Goal {
    int rows = 0;
    std::vector<double> directions, offsets;
    bool least = false;
};

struct Options {
    bool majority = false;
    double seconds = -1;   // for all people together; below 0: no limit
    uint64_t nodes = 0, evaluations = 0;
    int threads = 1;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual Answers tally(const People&, const Listed*, const Options&) = 0;
    virtual Answers find(const People&, const int32_t* own, const double* scores, double epsilon, double doubt, const Options&) = 0;
    virtual Answers worst(const People&, const Goal&, const Options&) = 0;
};

// Each instruction set compiles kernel.inc once, under its own name.
std::unique_ptr<Kernel> make_portable(const ModelSpec&);
std::unique_ptr<Kernel> make_avx2(const ModelSpec&);

}  // namespace feta

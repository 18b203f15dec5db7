// Answers of the kernel to random queries, as one hash: it must not depend on the instruction set or
// the compiler. `scripts/check_answers` builds this file and runs it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/native/kernel.hpp"

using namespace feta;

namespace {

// A generator with the same numbers everywhere (SplitMix64).
struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    int below(int n) { return int(next() % uint64_t(n)); }
    double symmetric() { return (double(next() >> 11) * 0x1p-53 - 0.5) * 2; }  // in [−1, 1)
    std::vector<double> numbers(size_t count, double scale) {
        std::vector<double> out(count);
        for (double& x : out) x = symmetric() * scale;
        return out;
    }
};

std::vector<double> sizes_of(const std::vector<double>& from) {
    std::vector<double> out;
    for (const double x : from) out.push_back(x < 0 ? -x : x);
    return out;
}

ModelSpec random_model(Random& random, int number) {
    static constexpr int widths[] = {4, 7, 16, 24, 40};
    ModelSpec spec;
    spec.neurons = widths[number % 5];
    spec.columns = 6;
    spec.bias = random.numbers(size_t(spec.neurons), 0.5);
    spec.cancelled_magnitude.assign(size_t(spec.neurons), 0.0);
    const int axes = 2 + random.below(3);
    for (int a = 0; a < axes; ++a) {
        AxisSpec axis;
        axis.values = 2 + random.below(a == 0 ? 40 : 9);
        axis.terms = random.numbers(size_t(axis.values) * size_t(spec.neurons), 1.0);
        axis.magnitudes = sizes_of(axis.terms);
        spec.axes.push_back(std::move(axis));
    }
    const int classes = number % 3 == 2 ? 3 : 1, depth = 1 + number % 4;
    int inputs = spec.neurons;
    for (int k = 0; k < depth; ++k) {
        LayerSpec layer;
        layer.inputs = inputs;
        layer.outputs = k + 1 < depth ? spec.neurons : classes;
        layer.weight = random.numbers(size_t(layer.inputs) * size_t(layer.outputs), 3.0 / inputs);
        layer.bias = random.numbers(size_t(layer.outputs), 0.5);
        layer.cancelled_magnitude.assign(size_t(layer.outputs), 0.0);
        layer.activation = {2, 1, {0.0}, {0.0, 1.0}, {0.0, 0.0}, {}};
        inputs = layer.outputs;
        spec.layers.push_back(std::move(layer));
    }
    spec.rule.outputs = classes;
    spec.rule.classes = classes > 1 ? classes : 2;
    spec.rule.kind = classes > 1 ? RuleKind::argmax : RuleKind::threshold;
    spec.rule.value = random.symmetric() * 0.2;
    spec.forms_from = 1;
    return spec;
}

struct Hash {
    uint64_t value = 0xcbf29ce484222325u;  // FNV-1a
    void add(uint64_t number) {
        for (int byte = 0; byte < 8; ++byte) {
            value ^= (number >> (8 * byte)) & 0xff;
            value *= 0x100000001b3u;
        }
    }
};

uint64_t winner_of(const Results& results, size_t person) {
    const uint64_t* counts = results.counts.data() + person * results.classes;
    size_t best = 0;
    for (size_t c = 1; c < results.classes; ++c)
        if (counts[c] > counts[best]) best = c;
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    auto* make = &make_portable;
#if defined(__x86_64__)
    if (argc > 1 && !std::strcmp(argv[1], "avx2")) make = &make_avx2;
    if (argc > 1 && !std::strcmp(argv[1], "avx512")) make = &make_avx512;
#endif
    const int models = argc > 2 ? std::atoi(argv[2]) : 200;
    Hash hash;
    size_t open = 0;
    for (int number = 0; number < models; ++number) {
        Random random{uint64_t(number)};
        const ModelSpec spec = random_model(random, number);
        const std::vector<Tree> trees = build_trees(spec);
        const std::unique_ptr<Kernel> kernel = make(spec, trees.data());
        constexpr size_t count = 9;
        const std::vector<double> constants = random.numbers(count * size_t(spec.neurons), 1.0);
        const std::vector<double> magnitudes = sizes_of(constants);
        const People people{constants.data(), magnitudes.data(), count};
        Options options;
        const Results all = kernel->tally(people, nullptr, options);
        options.majority = true;
        const Results most = kernel->tally(people, nullptr, options);
        const std::vector<int32_t> reference(count, 0);
        const std::vector<double> centers(count, 0.0);
        options.majority = false;
        const Results found = kernel->find(people, reference.data(), centers.data(), 0.0, options);
        std::vector<double> direction(size_t(spec.rule.outputs), 0.0);
        direction[0] = 1.0;
        const std::vector<double> offsets(count, 0.0), floors(count, -1e300);
        const std::vector<int32_t> kind(count, 0);
        Objectives objectives;
        objectives.rows = 1;
        objectives.directions = direction.data();
        objectives.offsets = offsets.data();
        objectives.kind = kind.data();
        objectives.floors = floors.data();
        const Results worst = kernel->worst(people, objectives, options);
        for (const Results* results : {&all, &most, &found})
            for (const std::vector<uint64_t>& ids : results->undecided_ids) open += ids.size();
        for (const uint64_t votes : all.counts) hash.add(votes);
        for (size_t p = 0; p < count; ++p) {
            uint64_t votes = 0, largest = 0;
            for (size_t c = 0; c < all.classes; ++c) {
                votes += all.counts[p * all.classes + c];
                largest = std::max(largest, all.counts[p * all.classes + c]);
            }
            const bool tie = largest * 2 == votes;
            hash.add(tie ? ~uint64_t(0) : winner_of(most, p));
            hash.add(found.has_match[p]);
            hash.add(worst.assignment_id[p]);
            hash.add(worst.has_match[p]);
        }
    }
    std::printf("%016llx %d models, %zu counterparts undecided\n",
                static_cast<unsigned long long>(hash.value), models, open);
}

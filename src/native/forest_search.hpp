// Search: queries about one person, by the exact sums of all classes of counterparts.
#pragma once
#include <chrono>

#include "forest_replay.hpp"
#include "forest_rule.hpp"
#include "forest_table.hpp"

namespace feta {
namespace forest {

using Clock = std::chrono::steady_clock;

// More cells close to the threshold are not replayed; the person is labeled sensitive.
constexpr size_t max_replays = 4096;

struct Limits {
    Clock::time_point deadline = Clock::time_point::max();
    uint64_t evaluations = 0;  // nodes and cells; 0: no limit
};

struct Outcome {
    std::vector<uint64_t> counts;         // counterparts by decision
    std::vector<uint64_t> candidates;     // ids of possible matches, one per cell, ascending
    bool runtime_safe = true, finished = true, found = false;
    uint64_t assignment_id = 0, cost = 0;
};

// The largest (or smallest) of directions · sums + offsets. Offsets lie between two integers.
template <class Int> struct Objective {
    int rows = 1;
    const double* directions = nullptr;  // (rows, outputs): −1, 0 and 1
    const Int *low = nullptr, *high = nullptr;
    bool smallest = false;
    Int floor = 0;  // smaller values do not matter
    Int level = 0;  // values above it have a different decision
};

// Listed assignments: the groups of each by axis, and its votes.
struct Listed {
    std::vector<int32_t> groups;
    std::vector<uint64_t> votes;
};

template <class Int> class Search {
  public:
    explicit Search(const ForestSpec& from)
        : spec(from), boxes(from), table(from), comparison(from), replayed(from),
          groups(from.axes.size()) {}

    void tally(const double* person, Outcome& out, const Listed* listed, bool label,
               const Limits& limits) {
        if (!listed && decide_all(person, out, label)) return;
        if (!fill(person, out, limits)) return;
        const size_t row = table.row;
        if (listed) return tally_listed(out, *listed);
        table.for_each_row([&](size_t cell, uint64_t, uint64_t size) {
            for (size_t j = 0; j < row; ++j) {
                const Decision decision = decide(cell + j);
                out.counts[size_t(decision.number)] += size * last_size(j);
                if (label && !decision.sure) unsure(out, cell + j);
            }
            return true;
        });
        if (label) replay(out, 0, 0);
    }

    void find(const double* person, Outcome& out, int reference, const Band<Int>& band,
              double center, double half, const Limits& limits) {
        comparison.band = band;
        if (!fill(person, out, limits)) return;
        uint64_t lowest = UINT64_MAX;
        table.for_each_row([&](size_t cell, uint64_t id, uint64_t) {
            for (size_t j = 0; j < table.row; ++j) {
                const Decision decision = decide(cell + j);
                const uint64_t at = id + last_id(j);
                if (decision.number == unknown) out.candidates.push_back(at);
                if (decision.number != unknown && decision.number != reference)
                    lowest = std::min(lowest, at);
                if (!decision.sure) unsure(out, cell + j);
            }
            return true;
        });
        out.found = lowest != UINT64_MAX;
        if (out.found) {
            out.assignment_id = lowest;
            out.candidates.clear();
            return;
        }
        std::sort(out.candidates.begin(), out.candidates.end());
        replay(out, center, half);
    }

    void worst(const double* person, Outcome& out, const Objective<Int>& objective,
               const Limits& limits) {
        if (!fill(person, out, limits)) return;
        Int best = objective.floor;
        bool reached = false;
        for (size_t cell = 0; cell < table.cells; ++cell) {
            const Int low = value(objective, objective.low, cell);
            if (low > best || (!reached && low == best)) {
                best = low;
                reached = true;
            }
        }
        uint64_t lowest = UINT64_MAX;
        table.for_each_row([&](size_t cell, uint64_t id, uint64_t) {
            for (size_t j = 0; j < table.row; ++j) {
                if (value(objective, objective.high, cell + j) < best) continue;
                out.candidates.push_back(id + last_id(j));
                lowest = std::min(lowest, out.candidates.back());
            }
            return true;
        });
        const bool exact = std::equal(objective.low, objective.low + objective.rows,
                                      objective.high);
        if (exact && best > objective.level && !out.candidates.empty())
            out.candidates.assign(1, lowest);  // all of them are equal and get another decision
        std::sort(out.candidates.begin(), out.candidates.end());
        if (out.candidates.size() == 1) {
            out.found = true;
            out.assignment_id = lowest;
            out.candidates.clear();
        }
    }

  private:
    const ForestSpec& spec;
    Boxes boxes;
    Table<Int> table;
    Comparison<Int> comparison;
    Replayed replayed;
    std::vector<int32_t> groups;
    std::vector<size_t> unsure_cells;
    std::vector<double> scores;
    bool walked = false;

    Decision decide(size_t cell) const {
        return comparison.decide(&table.sums[cell], table.cells);
    }
    uint64_t last_size(size_t j) const {
        return table.order.empty() ? 1 : table.classes[size_t(table.order.back())].sizes[j];
    }
    uint64_t last_id(size_t j) const {
        if (table.order.empty()) return 0;
        const size_t axis = size_t(table.order.back());
        return table.classes[axis].first[j] * spec.axes[axis].stride;
    }

    // Walk the trees; if the smallest and the largest sums already decide, count everybody.
    bool decide_all(const double* person, Outcome& out, bool label) {
        boxes.collect(person);
        walked = true;
        if (spec.rule.kind != RuleKind::threshold || (label && !(spec.source_error < 1e300)))
            return false;
        Int low = table.base[0], high = table.base[0];
        for (size_t t = 0; t + 1 < boxes.first_of_tree.size(); ++t) {
            const size_t from = boxes.first_of_tree[t], to = boxes.first_of_tree[t + 1];
            Int least = table.leaves[size_t(boxes.leaf_of[from])], most = least;
            for (size_t b = from + 1; b < to; ++b) {
                const Int sum = table.leaves[size_t(boxes.leaf_of[b])];
                least = std::min(least, sum);
                most = std::max(most, sum);
            }
            low += least;
            high += most;
        }
        const Decision lower = comparison.decide(&low, 1), upper = comparison.decide(&high, 1);
        if (lower.number != upper.number || (label && !(lower.sure && upper.sure))) return false;
        uint64_t total = 1;
        for (const Axis& axis : spec.axes)
            total *= std::accumulate(axis.sizes.begin(), axis.sizes.end(), uint64_t(0));
        out.counts[size_t(lower.number)] = total;
        out.cost = boxes.visited;
        walked = false;
        return true;
    }

    // Compute all sums; return false if a limit is reached.
    bool fill(const double* person, Outcome& out, const Limits& limits) {
        if (!walked) boxes.collect(person);
        walked = false;
        unsure_cells.clear();
        if (!(spec.source_error < 1e300)) out.runtime_safe = false;
        out.cost = boxes.visited + table.prepare(boxes);
        const bool late = limits.deadline != Clock::time_point::max() &&
                          Clock::now() >= limits.deadline;
        if (late || (limits.evaluations && out.cost > limits.evaluations)) {
            out.finished = out.runtime_safe = false;
            return false;
        }
        table.fill(boxes);
        return true;
    }

    void tally_listed(Outcome& out, const Listed& listed) {
        const size_t n_axes = spec.axes.size();
        for (size_t n = 0; n < listed.votes.size(); ++n) {
            const size_t cell = table.cell_of(&listed.groups[n * n_axes]);
            const Decision decision = decide(cell);
            out.counts[size_t(decision.number)] += listed.votes[n];
            if (!decision.sure) unsure(out, cell);
        }
        replay(out, 0, 0);
    }

    void unsure(Outcome& out, size_t cell) {
        if (!out.runtime_safe) return;
        unsure_cells.push_back(cell);
        if (unsure_cells.size() > max_replays) out.runtime_safe = false;
    }

    // Replay the library's sums for the cells that its error bound does not decide.
    void replay(Outcome& out, double center, double half) {
        scores.resize(size_t(spec.outputs));
        for (const size_t cell : unsure_cells) {
            if (!out.runtime_safe) return;
            for (size_t o = 0; o < scores.size(); ++o)
                scores[o] = double(table.sums[o * table.cells + cell]) * spec.unit;
            table.groups_of(cell, groups.data());
            replayed.run(boxes, groups.data());
            out.runtime_safe = replayed.agrees(scores, center, half);
        }
    }

    Int value(const Objective<Int>& objective, const Int* offsets, size_t cell) const {
        Int result = 0;
        for (int r = 0; r < objective.rows; ++r) {
            Int sum = offsets[r];
            for (int o = 0; o < spec.outputs; ++o)
                sum += Int(objective.directions[r * spec.outputs + o]) *
                       table.sums[size_t(o) * table.cells + cell];
            result = r == 0 ? sum : objective.smallest ? std::min(result, sum)
                                                       : std::max(result, sum);
        }
        return result;
    }
};

}  // namespace forest
}  // namespace feta

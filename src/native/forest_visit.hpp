// Visits: what each query does with the rows of a person's slices.
#pragma once
#include "forest_slices.hpp"
#include "forest_sums.hpp"

namespace feta {
namespace forest {

// More cells close to the threshold are not replayed; the person is labeled sensitive.
constexpr size_t max_replays = 4096;

struct Outcome {
    std::vector<uint64_t> counts;      // counterparts by decision
    std::vector<uint64_t> candidates;  // ids of possible matches, one per cell, ascending
    bool runtime_safe = true, finished = true, found = false;
    uint64_t assignment_id = 0, cost = 0;

    void reset(size_t classes) {
        counts.assign(classes, 0);
        candidates.clear();
        runtime_safe = finished = true;
        found = false;
        assignment_id = cost = 0;
    }
};

// Cells that the library may decide differently.
template <class Int> class UnsureCells {
  public:
    struct Cell {
        Row row;
        size_t at;
    };
    std::vector<Cell> cells;
    std::vector<Int> sums;  // (cells, outputs)
    bool too_many = false;

    void clear() {
        cells.clear();
        sums.clear();
        too_many = false;
    }

    void add(const Row& row, size_t at, const Int* values, size_t step, size_t outputs) {
        if (too_many) return;
        cells.push_back({row, at});
        for (size_t o = 0; o < outputs; ++o) sums.push_back(values[o * step + at]);
        too_many = cells.size() > max_replays;
    }
};

// Counts decisions; with `majority`, until one of them has more than half of all counterparts.
template <class Int> class TallyVisit {
  public:
    TallyVisit(const Slices<Int>& from, const Comparison<Int>& by, UnsureCells<Int>& near,
               std::vector<uint64_t>& to, bool with_label, bool only_majority, uint64_t of)
        : slices(from), comparison(by), unsure(near), counts(to), label(with_label),
          majority(only_majority), total(of) {}

    bool complete = true;  // whether every counterpart is counted; false for rounded sums only

    bool done() const {
        return majority && 2 * *std::max_element(counts.begin(), counts.end()) > total;
    }

    bool skip(const Row& row, Int low, Int high) {
        const Decision decision = comparison.decide_range(low, high);
        if (decision.number == unknown || (label && !decision.sure)) return false;
        counts[size_t(decision.number)] += row.size * slices.inner_total();
        return true;
    }

    bool take(const Row& row, const Int* sums) {
        if (comparison.has_threshold() && !label) {
            uint64_t below, above;
            const int number = comparison.above_number();
            comparison.count(sums, slices.shape.row, slices.inner_sizes.data(), below, above);
            counts[size_t(number)] += above * row.size;
            counts[size_t(1 - number)] += below * row.size;
            complete &= below + above == slices.inner_total();
        } else
            take_cells(row, sums);
        return !done();
    }

  private:
    const Slices<Int>& slices;
    const Comparison<Int>& comparison;
    UnsureCells<Int>& unsure;
    std::vector<uint64_t>& counts;
    bool label, majority;
    uint64_t total;

    void take_cells(const Row& row, const Int* sums) {
        const size_t step = slices.shape.row;
        for (size_t j = 0; j < step; ++j) {
            const Decision decision = comparison.decide(sums + j, step);
            if (decision.number == unknown)
                complete = false;
            else
                counts[size_t(decision.number)] += row.size * slices.inner_sizes[j];
            if (label && !decision.sure)
                unsure.add(row, j, sums, step, size_t(slices.spec.outputs));
        }
    }
};

// Finds the lowest assignment whose decision differs from the reference.
template <class Int> class FindVisit {
  public:
    FindVisit(const Slices<Int>& from, const Comparison<Int>& by, UnsureCells<Int>& near,
              Outcome& to, int with)
        : slices(from), comparison(by), unsure(near), out(to), reference(with) {}

    uint64_t lowest = UINT64_MAX;

    bool done() const { return false; }

    bool skip(const Row& row, Int low, Int high) {
        if (row.id >= lowest) return true;
        const Decision decision = comparison.decide_range(low, high);
        if (decision.number == unknown) return false;
        if (decision.number == reference) return decision.sure;
        lowest = row.id;
        return true;
    }

    bool take(const Row& row, const Int* sums) {
        const size_t step = slices.shape.row;
        for (size_t j = 0; j < step; ++j) {
            const Decision decision = comparison.decide(sums + j, step);
            const uint64_t id = row.id + slices.inner_ids[j];
            if (decision.number == unknown)
                out.candidates.push_back(id);
            else if (decision.number != reference)
                lowest = std::min(lowest, id);
            if (!decision.sure) unsure.add(row, j, sums, step, size_t(slices.spec.outputs));
        }
        return true;
    }

  private:
    const Slices<Int>& slices;
    const Comparison<Int>& comparison;
    UnsureCells<Int>& unsure;
    Outcome& out;
    int reference;
};

// The largest (or smallest) of directions · sums + offsets. Offsets lie between two integers.
template <class Int> struct Objective {
    int rows = 1;
    const double* directions = nullptr;  // (rows, outputs): −1, 0 and 1
    const Int *low = nullptr, *high = nullptr;
    bool smallest = false;
    Int floor = 0;  // smaller values do not matter
    Int level = 0;  // values above it have a different decision

    Int value(const Int* offsets, const Int* sums, size_t step, int outputs) const {
        Int result = 0;
        for (int r = 0; r < rows; ++r) {
            Int sum = offsets[r];
            for (int o = 0; o < outputs; ++o)
                sum += Int(directions[r * outputs + o]) * sums[size_t(o) * step];
            result = r == 0 ? sum : smallest ? std::min(result, sum) : std::max(result, sum);
        }
        return result;
    }

    // Return a bound on the value where the only output lies between two sums.
    Int bound(Int least, Int most) const {
        Int result = 0;
        for (int r = 0; r < rows; ++r) {
            const Int direction = Int(directions[r]);
            const Int sum = high[r] + std::max(direction * least, direction * most);
            result = r == 0 ? sum : smallest ? std::min(result, sum) : std::max(result, sum);
        }
        return result;
    }
};

// Finds the assignments that may have the largest objective.
template <class Int> class WorstVisit {
  public:
    WorstVisit(const Slices<Int>& from, const Objective<Int>& by)
        : slices(from), objective(by), best(by.floor) {}

    bool done() const { return false; }
    bool skip(const Row&, Int low, Int high) const { return objective.bound(low, high) < best; }

    bool take(const Row& row, const Int* sums) {
        const size_t step = slices.shape.row;
        const int outputs = slices.spec.outputs;
        for (size_t j = 0; j < step; ++j) {
            const Int most = objective.value(objective.high, sums + j, step, outputs);
            if (most < best) continue;
            const Int least = objective.value(objective.low, sums + j, step, outputs);
            best = std::max(best, least);
            reached.push_back({most, row.id + slices.inner_ids[j]});
        }
        if (reached.size() > kept + max_waste) prune();
        return true;
    }

    // Return the ids, ascending; one id if all are equal and get a different decision.
    std::vector<uint64_t> ids() {
        prune();
        std::vector<uint64_t> result;
        for (const Reached& cell : reached) result.push_back(cell.id);
        std::sort(result.begin(), result.end());
        const bool exact =
            std::equal(objective.low, objective.low + objective.rows, objective.high);
        if (exact && best > objective.level && result.size() > 1) result.resize(1);
        return result;
    }

  private:
    struct Reached {
        Int most;
        uint64_t id;
    };
    static constexpr size_t max_waste = 4096;
    const Slices<Int>& slices;
    const Objective<Int>& objective;
    Int best;
    std::vector<Reached> reached;
    size_t kept = 0;

    void prune() {
        std::erase_if(reached, [&](const Reached& cell) { return cell.most < best; });
        kept = reached.size();
    }
};

// Decides every cell, for listed assignments.
template <class Int> class DecideVisit {
  public:
    DecideVisit(const Slices<Int>& from, const Comparison<Int>& by)
        : slices(from), comparison(by) {}

    std::vector<Decision> decisions;  // by cell
    std::vector<Int> sums;            // (cells, outputs)

    bool done() const { return false; }
    bool skip(const Row&, Int, Int) const { return false; }

    bool take(const Row& row, const Int* from) {
        const size_t step = slices.shape.row, outputs = size_t(slices.spec.outputs);
        const size_t cell = (row.slice * slices.shape.combinations + row.combination) * step;
        if (decisions.size() < cell + step) {
            decisions.resize(cell + step);
            sums.resize((cell + step) * outputs);
        }
        for (size_t j = 0; j < step; ++j) {
            decisions[cell + j] = comparison.decide(from + j, step);
            for (size_t o = 0; o < outputs; ++o)
                sums[(cell + j) * outputs + o] = from[o * step + j];
        }
        return true;
    }

  private:
    const Slices<Int>& slices;
    const Comparison<Int>& comparison;
};

}  // namespace forest
}  // namespace feta

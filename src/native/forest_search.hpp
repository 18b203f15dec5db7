// Search: queries about one person, by the exact sums of all classes of counterparts.
#pragma once
#include <chrono>
#include <optional>

#include "forest_lane_majority.hpp"
#include "forest_majority.hpp"
#include "forest_replay.hpp"

namespace feta {
namespace forest {

using Clock = std::chrono::steady_clock;

struct Limits {
    Clock::time_point deadline = Clock::time_point::max();
    uint64_t evaluations = 0;  // nodes and cells; 0: no limit
};

// Listed assignments: the groups of each by axis, and its votes.
struct Listed {
    std::vector<int32_t> groups;
    std::vector<uint64_t> votes;
};

// `rounded` are sums of 64 bits that decide most people before exact ones are computed. `lanes`
// decide most majorities before either.
template <class Int> class Search {
  public:
    Search(const Layout& from, const LeafSets& leaf_sets, const Sums<Int>& with,
           const Sums<int64_t>* rounded, const LaneForest* lanes)
        : spec(from.spec), sums(with), rounded_sums(rounded), boxes(from, leaf_sets),
          slices(from, with), replayed(from.spec), comparison(with.comparison),
          groups(from.spec.axes.size()) {
        if (rounded) rounded_slices.emplace(from, *rounded);
        if (lanes) lane_majority.emplace(*lanes);
        for (const Axis& axis : spec.axes)
            total *= std::accumulate(axis.sizes.begin(), axis.sizes.end(), uint64_t(0));
    }

    void tally(const double* person, Outcome& out, bool label, bool majority,
               const Limits& limits) {
        boxes.collect(person);
        tally_boxes(out, label, majority, limits);
    }

    // Count until the majority is certain.
    void majority(const double* person, Outcome& out) {
        if (lane_majority && lane_majority->decide(person, boxes, out.counts)) return;
        std::fill(out.counts.begin(), out.counts.end(), 0);
        boxes.collect(person);
        tally_boxes(out, false, true, Limits{});
    }

    void tally_listed(const double* person, Outcome& out, const Listed& listed,
                      const Limits& limits) {
        boxes.collect(person);
        unsure.clear();
        if (!fill(slices, out, limits)) return;
        DecideVisit<Int> visit(slices, sums.comparison);
        slices.for_each_row(visit);
        const size_t n_axes = spec.axes.size(), outputs = size_t(spec.outputs);
        std::vector<uint8_t> listed_cells(visit.decisions.size(), 0);
        for (size_t n = 0; n < listed.votes.size(); ++n) {
            const size_t cell = slices.cell_of(&listed.groups[n * n_axes]);
            const Decision& decision = visit.decisions[cell];
            out.counts[size_t(decision.number)] += listed.votes[n];
            if (decision.sure || listed_cells[cell]++) continue;
            Row row;
            row.slice = cell / slices.shape.row / slices.shape.combinations;
            row.combination = cell / slices.shape.row % slices.shape.combinations;
            unsure.add(row, cell % slices.shape.row,
                       &visit.sums[cell * outputs] - cell % slices.shape.row, 1, outputs);
        }
        replay(out, 0, 0);
    }

    void find(const double* person, Outcome& out, int reference, const Band<Int>& band,
              double center, double half, const Limits& limits) {
        comparison.band = band;
        boxes.collect(person);
        unsure.clear();
        if (!fill(slices, out, limits)) return;
        FindVisit<Int> visit(slices, comparison, unsure, out, reference);
        slices.for_each_row(visit);
        out.found = visit.lowest != UINT64_MAX;
        if (out.found) {
            out.assignment_id = visit.lowest;
            out.candidates.clear();
            return;
        }
        std::sort(out.candidates.begin(), out.candidates.end());
        replay(out, center, half);
    }

    void worst(const double* person, Outcome& out, const Objective<Int>& objective,
               const Limits& limits) {
        boxes.collect(person);
        if (!fill(slices, out, limits)) return;
        WorstVisit<Int> visit(slices, objective);
        slices.for_each_row(visit);
        out.candidates = visit.ids();
        if (out.candidates.size() == 1) {
            out.found = true;
            out.assignment_id = out.candidates[0];
            out.candidates.clear();
        }
    }

  private:
    const ForestSpec& spec;
    const Sums<Int>& sums;
    const Sums<int64_t>* rounded_sums;
    Boxes boxes;
    Slices<Int> slices;
    std::optional<Slices<int64_t>> rounded_slices;
    std::optional<LaneMajority> lane_majority;
    Range<Int> range;
    Range<int64_t> rounded_range;
    UnsureCells<Int> unsure;
    UnsureCells<int64_t> rounded_unsure;
    std::tuple<MajorityCount<int64_t>, MajorityCount<Wide>> majorities;
    Replayed replayed;
    Comparison<Int> comparison;  // with the band of a query
    std::vector<int32_t> groups;
    std::vector<double> scores;
    uint64_t total = 1;  // counterparts

    void tally_boxes(Outcome& out, bool label, bool majority, const Limits& limits) {
        if (rounded_sums && count(*rounded_sums, *rounded_slices, rounded_range, rounded_unsure,
                                  out, label, majority, limits))
            return;
        count(sums, slices, range, unsure, out, label, majority, limits);
        if (label) replay(out, 0, 0);
    }

    // Count decisions; return false if the sums are rounded and do not decide everything, or if
    // the library's own sums have to be replayed for the label.
    template <class T> bool count(const Sums<T>& values, Slices<T>& rows, Range<T>& ends,
                                  UnsureCells<T>& near, Outcome& out, bool label, bool majority,
                                  const Limits& limits) {
        const bool labeled = label && spec.source_error < 1e300;
        near.clear();
        if (values.comparison.has_threshold() && labeled == label) {
            ends.find(boxes, values);
            const Decision decision = values.comparison.decide_range(ends.low, ends.high);
            if (decision.number != unknown && (!label || decision.sure)) {
                out.counts[size_t(decision.number)] = total;
                out.cost = boxes.count();
                return true;
            }
        }
        if (!fill(rows, out, limits)) return true;
        if (majority && !label && values.comparison.has_threshold()) {
            MajorityCount<T>& counting = std::get<MajorityCount<T>>(majorities);
            const bool complete = counting.run(rows, values.comparison, total, out.counts);
            const uint64_t most = *std::max_element(out.counts.begin(), out.counts.end());
            if (complete || values.slack == 0 || 2 * most > total) return true;
            std::fill(out.counts.begin(), out.counts.end(), 0);
            return false;
        }
        TallyVisit<T> visit(rows, values.comparison, near, out.counts, labeled, majority, total);
        rows.for_each_row(visit);
        // Only sums of `Int` are replayed; rounded ones can be exact, too, and still be near.
        if (std::is_same_v<T, Int>) return true;
        if (near.cells.empty() && (visit.complete || visit.done())) return true;
        std::fill(out.counts.begin(), out.counts.end(), 0);
        return false;
    }

    // Compute the base of all sums; return false if a limit is reached.
    template <class T> bool fill(Slices<T>& rows, Outcome& out, const Limits& limits) {
        if (!(spec.source_error < 1e300)) out.runtime_safe = false;
        out.cost = boxes.count() + rows.prepare(boxes);
        const bool late =
            limits.deadline != Clock::time_point::max() && Clock::now() >= limits.deadline;
        if (late || (limits.evaluations && out.cost > limits.evaluations)) {
            out.finished = out.runtime_safe = false;
            return false;
        }
        rows.fill(boxes);
        return true;
    }

    // Replay the library's sums for the cells that its error bound does not decide.
    void replay(Outcome& out, double center, double half) {
        if (unsure.too_many) out.runtime_safe = false;
        scores.resize(size_t(spec.outputs));
        for (size_t n = 0; n < unsure.cells.size() && out.runtime_safe; ++n) {
            for (size_t o = 0; o < scores.size(); ++o)
                scores[o] = double(unsure.sums[n * scores.size() + o]) * spec.unit;
            slices.groups_of(unsure.cells[n].row, unsure.cells[n].at, groups.data());
            replayed.run(boxes, groups.data());
            out.runtime_safe = replayed.agrees(scores, center, half);
        }
    }
};

}  // namespace forest
}  // namespace feta

// Search: branch and bound over the lattice of one person. It returns the counterparts that remain
// undecided, for exact arithmetic.
//
// This header declares the search and its state. Each mode has its own header: search_tally.hpp,
// search_means.hpp, search_find.hpp, search_worst.hpp and search_worst_real.hpp.
#pragma once
#include <chrono>

#include "comparator.hpp"
#include "forms.hpp"
#include "frontier.hpp"
#include "mean_vote.hpp"
#include "roots.hpp"
#include "scores.hpp"
#include "trace.hpp"

namespace feta {
namespace FETA_ISA {

using Clock = std::chrono::steady_clock;

// Most undecided counterparts of one person before the search gives up: 128 MB of ids.
constexpr size_t max_undecided = size_t(1) << 24;

struct Limits {
    Clock::time_point deadline = Clock::time_point::max();
    uint64_t nodes = 0;        // bounded nodes before the rest is enumerated; 0: no limit
    uint64_t evaluations = 0;  // nodes and counterparts before giving up; 0: no limit
};

// Result of one query about one person.
struct Outcome {
    std::vector<uint64_t> counts;         // proved counterparts by class
    std::vector<uint64_t> undecided_ids;  // assignment ids that need exact arithmetic
    bool runtime_safe = true;             // the source's runtime provably agrees on all counts
    bool finished = true;                 // false: the budget is spent
    bool has_match = false;               // `assignment_id` is a counterexample, or the worst
    uint64_t assignment_id = 0;
    uint64_t bounded_nodes = 0, scored_points = 0;
    // For a real-valued attribute: its value at the best point, the computed sign · score there,
    // and a proved upper bound of sign · score over the lattice if `finished`.
    double real_value = 0, best_score = 0, upper_bound = 0;
};

class Search {
  public:
    Search(const ModelSpec& model, const Network<float>& network32,
           const Network<double>& network64)
        : spec(model), net32(network32), net64(network64), roots(spec, net32, net64),
          zonotope(net32), forms(net32), trace(net64), points32(net32), points64(net64),
          axes(net32.axes), outputs(net32.outputs()), ids(axes, 0), children(size_t(lanes) * axes),
          coordinates(axes), frontier(axes) {
        strides.assign(axes, 0);
        for (int a = axes - 1; a >= 0; --a) {
            if (spec.axes[a].real) {
                real_axis = a;
                real_slopes.assign(size_t(net64.width), 0.0);
                std::copy(spec.axes[a].slopes.begin(), spec.axes[a].slopes.end(),
                          real_slopes.begin());
                continue;  // it is not part of the assignment id
            }
            strides[a] = total;
            total *= uint64_t(spec.axes[a].values);
        }
        line_terms.assign(size_t(net64.width), 0.0);
    }

    static constexpr int lanes = lanes_of<float>;
    Roots& people_roots() { return roots; }

    // Select one of the people whose roots were bounded.
    void select_person(int lane) {
        person = lane;
        errors64_ready = false;
    }

    // Count the classes of all counterparts; with `majority`, stop once the majority is certain.
    void tally(Outcome& out, bool majority, const Limits& limits);

    // Count the votes of listed assignments by class.
    void tally_listed(Outcome& out, const uint64_t* assignment_ids, const uint64_t* votes,
                      size_t n_listed, uint64_t total_votes, bool majority, const Limits& limits);

    // Decide by the mean of the counterparts: 1, 0 or undecided.
    int decide_mean(const IsaMeanVote& vote);

    // Return whether the leading class of a tally is the winner: all counterparts are counted, or
    // the undecided ones cannot change it.
    bool winner_is_certain(const Outcome& out, uint64_t counted) const;

    // Find a counterpart whose class differs from the reference; for a tolerance, one outside the
    // band center ± half.
    void find(Outcome& out, int reference_class, double center, double half, const Limits& limits);

    // Find all counterparts that may have the largest objective, or none if it is provably below
    // `floor`. With `approximate`, one suffices that is provably above the floor and misses the
    // largest by no more than float32 rounding: much faster if many counterparts are equal.
    void worst(Outcome& out, const Objective& objective, double floor, bool approximate,
               const Limits& limits);

    // Find the highest (sign 1) or lowest (−1) score if one attribute is real-valued. The result
    // may be empty if sign · score is provably below `floor`.
    void worst_real(Outcome& out, double sign, double floor, const Limits& limits);

    // Bound nodes and score points, in search_bounds.hpp.
    void bound_and_score(const NodesAndPoints& query, NodeBounds& bounds);

  private:
    uint64_t decide_by_form(const int32_t* node_ids, float sign,
                            std::vector<std::vector<uint64_t>>& open);

    // What a query asks for; `start` sets it.
    struct Mode {
        int reference = undecided;    // class of the person in `find`, otherwise undecided
        double center = 0, half = 0;  // of the band of a tolerance
        bool majority_only = false;   // stop at a certain majority
    };

    const ModelSpec& spec;
    const Network<float>& net32;
    const Network<double>& net64;
    Roots roots;
    Zonotope<float> zonotope;
    Forms forms;
    Trace trace;
    Points<float> points32;
    Points<double> points64;
    int axes, outputs, person = 0;  // person: its lane in `roots`
    uint64_t total = 1;             // counterparts
    std::vector<uint64_t> strides;
    int real_axis = -1;
    std::vector<double> real_slopes, line_terms;
    std::vector<int32_t> ids, children, coordinates, stack;
    bool errors64_ready = false;
    std::vector<std::vector<double>> errors64;
    double source_error = 0;
    Mode mode;
    Frontier frontier;
    std::vector<std::pair<double, double>> ranges =
        std::vector<std::pair<double, double>>(max_points);
    std::vector<std::pair<uint64_t, double>> candidates;  // possible worst: id and upper bound
    size_t candidates_after_pruning = 0;
    uint64_t ticks = 0;

    // State of `tally_majority`.
    struct FrontierVotes {
        int of = 0;          // the class that the votes are for
        uint64_t votes = 0;  // counted so far
        double rest = 0;     // not counted
        double share = 0;    // of the rest that is expected to vote for the leader
    };
    std::vector<FrontierVotes> frontier_votes;  // by slot of the frontier
    double promised = 0;                        // sum of rest · share
    int leader = 0;                             // the class whose votes are counted
    std::vector<int32_t> waiting;               // coordinates of counterparts to score

    // The objective that a node or point must be able to reach: `best`, the largest proved lower
    // bound of a point, or the floor. With a tolerance and a point above the floor, it must exceed
    // best + tolerance.
    struct Cutoff {
        double floor, best, tolerance;
        double bound() const { return best > floor ? best + tolerance : best; }
        bool admits(double high) const {
            return tolerance > 0 && best > floor ? !(high <= bound()) : !(high < best);
        }
    };

    void start(Outcome& out, const Mode& of_query) {
        mode = of_query;
        out.counts.assign(size_t(std::max(2, spec.rule.classes)), 0);
        out.undecided_ids.clear();
        source_error = spec.source_error;
        out.runtime_safe = spec.source_error < 1e300;
        out.finished = true;
        out.has_match = false;
        out.assignment_id = out.bounded_nodes = out.scored_points = 0;
        out.real_value = out.best_score = out.upper_bound = 0;
        candidates.clear();
        candidates_after_pruning = 0;
        frontier.clear();
    }

    bool out_of_budget(Outcome& out, const Limits& limits) {
        const bool spent =
            (limits.evaluations && out.bounded_nodes + out.scored_points >= limits.evaluations) ||
            out.undecided_ids.size() + candidates.size() > max_undecided;
        const bool check_clock = !(ticks++ & 63) && limits.deadline != Clock::time_point::max();
        if (spent || (check_clock && Clock::now() >= limits.deadline)) out.finished = false;
        return !out.finished;
    }

    // Return whether the leading class stays ahead whatever the remaining counterparts are.
    static bool lead_is_final(const std::vector<uint64_t>& counts, uint64_t total_votes) {
        uint64_t best = 0, second = 0, sum = 0;
        for (const uint64_t votes : counts) {
            sum += votes;
            if (votes > best) {
                second = best;
                best = votes;
            } else
                second = std::max(second, votes);
        }
        return best > second + (total_votes - sum);
    }

    NodeScores<float> root() const {
        return {roots.bounds(), person, roots.source_rounding(person), source_error};
    }

    NodeScores<float> node(int lane) const {
        return {zonotope, lane, roots.source_rounding(person), source_error};
    }

    void push_node(int lane) { frontier.push(&children[size_t(lane) * axes], key_of(node(lane))); }

    static void record_match(Outcome& out, uint64_t assignment_id) {
        out.has_match = true;
        out.assignment_id = assignment_id;
    }

    // Nodes, in search_nodes.hpp.
    uint64_t count_of(const int32_t* node) const;
    uint64_t assignment_id_of(const int32_t* point_coordinates) const;
    void set_coordinates(uint64_t assignment_id);
    void pop_first();
    int split();
    void push_halves();

    // Points, in search_points.hpp.
    void score_leaves(double min_key);
    int decide_point32(int point) const;
    void decide_points(Outcome& out);
    bool count_decided_points(Outcome& out) const;
    const double* error64();
    void score64(const int32_t* point_coordinates);
    int decide_point64(int point, Outcome& out);

    // Means, in search_means.hpp.
    template <class T> int sum_mean(const IsaMeanVote& vote, Points<T>& points, const T* center,
                                    double error, Range all);
    template <class T> void score_listed(const IsaMeanVote& vote, Points<T>& points,
                                         const T* center, size_t from, size_t count);

    // Expansion, in search_expand.hpp.
    int decide_root(Outcome& out);
    double key_of(const NodeScores<float>& node) const;
    void expand(Outcome& out, const Limits& limits);
    bool count_node(Outcome& out, int lane);
    void enumerate(Outcome& out, const Limits& limits);

    // Majorities by forms, in search_majority.hpp.
    bool counts_by_forms() const;
    void tally_majority(Outcome& out, const Limits& limits);
    int count_sample_above(Outcome& out);
    void record_votes(size_t slot, const FrontierVotes& votes);
    void switch_leader();
    void expand_by_forms(Outcome& out, const Limits& limits);
    void score_waiting(Outcome& out);

    // Candidates of `worst`, in search_worst.hpp.
    void collect_candidates(Outcome& out, const Objective& objective, Cutoff& cutoff);

    // Lines along the real axis, in search_worst_real.hpp.
    uint64_t n_lines(const int32_t* node) const;
    void load_line(int lane, const int32_t* node);
};

}  // namespace FETA_ISA
}  // namespace feta

// Search: branch and bound over the lattice of one person. It returns the counterparts that remain
// undecided, for exact arithmetic.
#pragma once
#include <chrono>

#include "comparator.hpp"
#include "frontier.hpp"
#include "roots.hpp"
#include "scores.hpp"
#include "trace.hpp"

namespace feta {
namespace FETA_ISA {

using Clock = std::chrono::steady_clock;

// Nodes of at most this many counterparts are scored, not split; must not exceed `max_points`.
constexpr int leaf_points = 64;

// `worst` also bounds nodes of at least this many counterparts backward; in smaller ones that gains
// little. A tally does so only for nodes that are too large to be scored (both measured).
constexpr uint64_t min_points_to_tighten = 32;

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
    Search(const ModelSpec& spec, const Network<float>& net32, const Network<double>& net64)
        : spec(spec), net32(net32), net64(net64), roots(spec, net32, net64), zonotope(net32),
          trace(net64), points32(net32), points64(net64), axes(net32.axes),
          outputs(net32.outputs()), ids(axes, 0), children(size_t(lanes) * axes), coordinates(axes),
          frontier(axes) {
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
    void tally(Outcome& out, bool majority, const Limits& limits) {
        start(out);
        majority_only = majority;
        if (decide_root(out) != undecided) return;
        while (!frontier.empty() && !(majority && lead_is_final(out.counts, total))) {
            if (out_of_budget(out, limits)) return;
            expand(out, limits);
        }
    }

    // Find a counterpart whose class differs from the reference; for a tolerance, one outside the
    // band center ± half.
    void find(Outcome& out, int reference_class, double center, double half, const Limits& limits) {
        start(out);
        band_center = center;
        band_half = half;
        reference = reference_class;
        const int root_decision = decide_root(out);
        if (root_decision != undecided && root_decision != reference_class) record_match(out, 0);
        while (!frontier.empty() && !out.has_match) {
            if (out_of_budget(out, limits)) break;
            expand(out, limits);
        }
        reference = undecided;
    }

    // Find all counterparts that may have the largest objective, or none if it is provably below
    // `floor`. With `approximate`, one suffices that is provably above the floor and misses the
    // largest by no more than float32 rounding: much faster if many counterparts are equal.
    void worst(Outcome& out, const Objective& objective, double floor, bool approximate,
               const Limits& limits) {
        start(out);
        Cutoff cutoff{floor, floor,
                      approximate ? 8 * objective.error(roots.kernel_errors(person)) : 0.0};
        std::fill(ids.begin(), ids.end(), 0);
        frontier.push(ids.data(), objective.high(roots.bounds(), person));
        // The first key is the largest: once the cutoff excludes it, it excludes all nodes.
        while (!frontier.empty() && cutoff.admits(frontier.key())) {
            if (out_of_budget(out, limits)) break;
            if (count_of(frontier.first()) <= leaf_points) {
                score_leaves(cutoff.best);
                collect_candidates(out, objective, cutoff);
                continue;
            }
            pop_first();
            const int n_children = split();
            out.bounded_nodes += uint64_t(n_children);
            if (count_of(children.data()) >= min_points_to_tighten) {
                zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                                           n_children);
                for (const float sign : {1.0f, -1.0f})
                    if (objective.increases_with(sign)) zonotope.tighten(broadcast(sign));
            } else
                zonotope.bound_nodes<false>(roots.center(person), roots.box(person),
                                            children.data(), n_children);
            for (int l = 0; l < n_children; ++l) {
                const double high = objective.high(zonotope, l);
                if (cutoff.admits(high)) frontier.push(&children[size_t(l) * axes], high);
            }
        }
        for (const auto& [assignment_id, high] : candidates)
            if (!(high < cutoff.best)) out.undecided_ids.push_back(assignment_id);
        std::sort(out.undecided_ids.begin(), out.undecided_ids.end());
        if (out.undecided_ids.size() == 1) {  // a single candidate is the worst
            record_match(out, out.undecided_ids[0]);
            out.undecided_ids.clear();
        }
    }

    // Return whether the leading class of a tally is the winner: all counterparts are counted, or
    // the undecided ones cannot change it.
    bool winner_is_certain(const Outcome& out, uint64_t counted) const {
        return counted == total || lead_is_final(out.counts, total);
    }

    // Find the highest (sign 1) or lowest (−1) score if one attribute is real-valued. The result
    // may be empty if sign · score is provably below `floor`.
    void worst_real(Outcome& out, double sign, double floor, const Limits& limits) {
        start(out);
        const int axis = real_axis;
        double largest = floor, error = 0;
        Cutoff cutoff{floor, floor, 0.0};
        std::fill(ids.begin(), ids.end(), 0);
        frontier.push(ids.data(),
                      sign > 0 ? roots.bounds().high()[person] : -roots.bounds().low()[person]);
        if (cutoff.admits(frontier.key())) {
            trace.set_slopes(real_slopes.data());
            error = error64()[0];
            trace.set_errors(errors64);
            cutoff.tolerance = 2 * error;  // the error of the best score and that of its bound
        }
        while (!frontier.empty() && cutoff.admits(frontier.key())) {
            if (out_of_budget(out, limits)) break;
            if (n_lines(frontier.first()) == 1) {
                int count = 0;
                std::vector<int32_t>& lines = children;
                while (count < Trace::lanes && !frontier.empty() && cutoff.admits(frontier.key()) &&
                       n_lines(frontier.first()) == 1) {
                    std::copy_n(frontier.first(), axes, lines.begin() + count * axes);
                    frontier.pop();
                    load_line(count, &lines[size_t(count) * axes]);
                    ++count;
                }
                trace.run(count, sign);
                out.scored_points += uint64_t(count);
                for (int l = 0; l < count; ++l) {
                    const double upper = trace.upper_bound(l) + error,
                                 high = upper + 0x1p-50 * std::abs(upper);
                    largest = high == high ? std::max(largest, high)
                                           : std::numeric_limits<double>::infinity();
                    if (!(trace.best_score(l) > out.best_score) && out.has_match) continue;
                    out.has_match = true;
                    out.best_score = trace.best_score(l);
                    out.real_value = trace.best_position(l);
                    for (int a = 0; a < axes; ++a)
                        coordinates[a] =
                            a == axis
                                ? 0
                                : net32.trees[a]
                                      .order[net32.trees[a].begin[lines[size_t(l) * axes + a]]];
                    out.assignment_id = assignment_id_of(coordinates.data());
                    cutoff.best = std::max(cutoff.best, out.best_score - error);
                }
                continue;
            }
            pop_first();
            const int n_children = split();
            out.bounded_nodes += uint64_t(n_children);
            zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                                       n_children);
            zonotope.tighten(broadcast(float(sign)));
            for (int l = 0; l < n_children; ++l) {
                double high = sign > 0 ? zonotope.high()[l] : -zonotope.low()[l];
                // Common in networks trained to be fair; the exact value ends the search sooner.
                if (zonotope.constant(l)) high = sign * spec.layers.back().bias[0];
                if (cutoff.admits(high)) frontier.push(&children[size_t(l) * axes], high);
            }
        }
        out.upper_bound = std::max(largest, cutoff.bound());
    }

    // Count the votes of listed assignments by class.
    void tally_listed(Outcome& out, const uint64_t* assignment_ids, const uint64_t* votes,
                      size_t n_listed, uint64_t total_votes, bool majority, const Limits& limits) {
        start(out);
        const int root_decision = decide(spec.rule, root(), band_center, band_half);
        if (root_decision != undecided) {
            out.counts[size_t(root_decision)] += total_votes;
            return;
        }
        for (size_t from = 0;
             from < n_listed && !(majority && lead_is_final(out.counts, total_votes));
             from += max_points) {
            if (out_of_budget(out, limits)) return;
            const int count = int(std::min<size_t>(max_points, n_listed - from));
            points32.clear();
            for (int p = 0; p < count; ++p) {
                set_coordinates(assignment_ids[from + size_t(p)]);
                points32.add_listed(roots.center(person), coordinates.data());
            }
            points32.run();
            out.scored_points += uint64_t(count);
            for (int p = 0; p < count; ++p) {
                int decision = decide_point32(p);
                if (decision == undecided) {
                    set_coordinates(assignment_ids[from + size_t(p)]);
                    decision = decide_point64(coordinates.data(), out);
                }
                if (decision == undecided)
                    out.undecided_ids.push_back(assignment_ids[from + size_t(p)]);
                else
                    out.counts[size_t(decision)] += votes[from + size_t(p)];
            }
        }
    }

  private:
    const ModelSpec& spec;
    const Network<float>& net32;
    const Network<double>& net64;
    Roots roots;
    Zonotope<float> zonotope;
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
    double band_center = 0, band_half = 0, source_error = 0;
    int reference = undecided;   // class of the person in `find`, otherwise undecided
    bool majority_only = false;  // stop at a certain majority
    Frontier frontier;
    std::vector<std::pair<double, double>> ranges =
        std::vector<std::pair<double, double>>(max_points);
    std::vector<std::pair<uint64_t, double>> candidates;  // possible worst: id and upper bound
    size_t candidates_after_pruning = 0;
    uint64_t ticks = 0;

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

    // Return the number of combinations of the other attributes in a node.
    uint64_t n_lines(const int32_t* node) const {
        uint64_t count = 1;
        for (int a = 0; a < axes; ++a)
            if (a != real_axis) count *= uint64_t(net32.trees[a].count(node[a]));
        return count;
    }

    void load_line(int lane, const int32_t* node) {
        std::copy_n(roots.center64(person), net32.neurons, line_terms.begin());
        for (int a = 0; a < axes; ++a) {
            if (a == real_axis) continue;
            const AxisTree<double>& tree = net64.trees[a];
            const double* terms =
                &tree.terms[size_t(tree.order[tree.begin[node[a]]]) * net64.width];
            for (int n = 0; n < net32.neurons; ++n) line_terms[n] += terms[n];
        }
        const AxisSpec& real = spec.axes[real_axis];
        const AxisTree<float>& tree = net32.trees[real_axis];
        trace.load_line(lane, line_terms.data(), edge(real, tree.begin[node[real_axis]]),
                        edge(real, tree.end[node[real_axis]]));
    }

    void start(Outcome& out) {
        out.counts.assign(size_t(std::max(2, spec.rule.classes)), 0);
        out.undecided_ids.clear();
        source_error = spec.source_error;
        out.runtime_safe = spec.source_error < 1e300;
        out.finished = true;
        out.has_match = false;
        out.assignment_id = out.bounded_nodes = out.scored_points = 0;
        out.real_value = out.best_score = out.upper_bound = 0;
        majority_only = false;
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

    int decide_root(Outcome& out) {
        out.bounded_nodes = 1;
        const int root_decision = decide(spec.rule, root(), band_center, band_half);
        if (root_decision != undecided) {
            out.counts[size_t(root_decision)] += total;
            return root_decision;
        }
        std::fill(ids.begin(), ids.end(), 0);
        frontier.push(ids.data(), 0.0);
        return undecided;
    }

    // Return the priority of a node: in a tally, nodes that are almost decided come first; in
    // `find`, nodes that may get furthest to the other side of the threshold or out of the band.
    double key_of(const NodeScores<float>& node) const {
        double key = 0;
        if (spec.rule.kind == RuleKind::threshold) {
            const double distance = node.value(0) - spec.rule.value;
            const bool reference_above = (reference == 1) == spec.rule.above;
            if (reference == undecided)
                key = std::abs(distance) / (node.radius(0) + 1e-300);
            else
                key = (reference_above ? -distance : distance) + node.radius(0);
        }
        if (spec.rule.kind == RuleKind::tolerance)
            key = std::abs(node.value(0) - band_center) + node.radius(0);
        return key == key ? key : 0.0;
    }

    uint64_t count_of(const int32_t* node) const {
        uint64_t count = 1;
        for (int a = 0; a < axes; ++a) count *= uint64_t(net32.trees[a].count(node[a]));
        return count;
    }

    uint64_t assignment_id_of(const int32_t* point_coordinates) const {
        uint64_t assignment_id = 0;
        for (int a = 0; a < axes; ++a) assignment_id += strides[a] * uint64_t(point_coordinates[a]);
        return assignment_id;
    }

    void set_coordinates(uint64_t assignment_id) {
        for (int a = 0; a < axes; ++a)
            coordinates[a] = int32_t(assignment_id / strides[a] % uint64_t(spec.axes[a].values));
    }

    void pop_first() {
        std::copy_n(frontier.first(), axes, ids.begin());
        frontier.pop();
    }

    // Split the node in `ids` recursively into at most `lanes` children; return their number.
    int split() {
        std::copy_n(ids.begin(), axes, children.begin());
        int n_children = 1;
        while (2 * n_children <= lanes) {
            int axis = -1;
            double largest = -1;
            for (int a = 0; a < axes; ++a) {
                const AxisTree<float>& tree = net32.trees[a];
                double weight = -1;
                for (int m = 0; m < n_children; ++m) {
                    const int32_t id = children[size_t(m) * axes + a];
                    if (tree.left[id] >= 0) weight = std::max(weight, tree.weight[id]);
                }
                if (weight > largest) largest = weight, axis = a;
            }
            if (axis < 0) break;
            const AxisTree<float>& tree = net32.trees[axis];
            const int n_parents = n_children;
            for (int m = 0; m < n_parents; ++m) {
                int32_t* child = &children[size_t(m) * axes];
                const int32_t parent = child[axis];
                if (tree.left[parent] < 0) continue;
                int32_t* sibling = &children[size_t(n_children++) * axes];
                std::copy_n(child, axes, sibling);
                child[axis] = tree.left[parent];
                sibling[axis] = tree.right[parent];
            }
        }
        return n_children;
    }

    // Expand the first node: score its counterparts if it is small, otherwise split and bound it.
    void expand(Outcome& out, const Limits& limits) {
        if (count_of(frontier.first()) <= leaf_points) {
            score_leaves(-std::numeric_limits<double>::infinity());
            decide_points(out);
            return;
        }
        pop_first();
        // Bounding has not paid off so far.
        if (limits.nodes && out.bounded_nodes >= limits.nodes) {
            enumerate(out, limits);
            return;
        }
        const int n_children = split();
        out.bounded_nodes += uint64_t(n_children);
        const bool bound_backward =
            spec.rule.kind == RuleKind::threshold && count_of(children.data()) > leaf_points;
        if (!bound_backward) {
            zonotope.bound_nodes<false>(roots.center(person), roots.box(person), children.data(),
                                        n_children);
            for (int l = 0; l < n_children && !out.has_match; ++l)
                if (!count_node(out, l)) push_node(l);
            return;
        }
        zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                                   n_children);
        int n_undecided = 0, undecided_lanes[lanes];
        double keys[lanes];
        for (int l = 0; l < n_children && !out.has_match; ++l)
            if (!count_node(out, l)) {
                keys[n_undecided] = key_of(node(l));
                undecided_lanes[n_undecided++] = l;
            }
        if (n_undecided == 0 || out.has_match ||
            (majority_only && lead_is_final(out.counts, total)))
            return;
        zonotope.tighten(zonotope.sides(spec.rule.value));
        for (int k = 0; k < n_undecided && !out.has_match; ++k)
            if (!count_node(out, undecided_lanes[k]))
                frontier.push(&children[size_t(undecided_lanes[k]) * axes], keys[k]);
    }

    NodeScores<float> node(int lane) const {
        return {zonotope, lane, roots.source_rounding(person), source_error};
    }

    void push_node(int lane) { frontier.push(&children[size_t(lane) * axes], key_of(node(lane))); }

    // Count the counterparts of a bounded node if it is decided; return whether it is.
    bool count_node(Outcome& out, int lane) {
        const int decision = decide(spec.rule, node(lane), band_center, band_half);
        if (decision == undecided) return false;
        const int32_t* child = &children[size_t(lane) * axes];
        out.counts[size_t(decision)] += count_of(child);
        if (reference != undecided && decision != reference) {
            for (int a = 0; a < axes; ++a)
                coordinates[a] = net32.trees[a].order[net32.trees[a].begin[child[a]]];
            record_match(out, assignment_id_of(coordinates.data()));
        }
        return true;
    }

    // Score all counterparts of the node in `ids` in batches, without bounds.
    void enumerate(Outcome& out, const Limits& limits) {
        stack.assign(ids.begin(), ids.end());
        points32.clear();
        while (!stack.empty() && !out.has_match) {
            std::copy(stack.end() - axes, stack.end(), ids.begin());
            stack.resize(stack.size() - size_t(axes));
            const uint64_t count = count_of(ids.data());
            if (count > max_points) {
                push_halves();
                continue;
            }
            if (points32.count() + int(count) > max_points) {
                if (out_of_budget(out, limits)) return;
                points32.run();
                decide_points(out);
                points32.clear();
            }
            points32.add(roots.center(person), ids.data(), int(count));
        }
        if (points32.count() && !out.has_match) {
            points32.run();
            decide_points(out);
        }
    }

    // Push the halves of the node in `ids` to the stack, split along the axis with most values.
    void push_halves() {
        int axis = 0;
        for (int a = 1; a < axes; ++a)
            if (net32.trees[a].count(ids[a]) > net32.trees[axis].count(ids[axis])) axis = a;
        const int32_t parent = ids[axis];
        for (const int32_t child :
             {net32.trees[axis].right[parent], net32.trees[axis].left[parent]}) {
            ids[axis] = child;
            stack.insert(stack.end(), ids.begin(), ids.end());
        }
    }

    static void record_match(Outcome& out, uint64_t assignment_id) {
        out.has_match = true;
        out.assignment_id = assignment_id;
    }

    // Score the first nodes of the frontier together, as long as they are small and fit.
    void score_leaves(double min_key) {
        points32.clear();
        while (!frontier.empty() && !(frontier.key() < min_key)) {
            const uint64_t count = count_of(frontier.first());
            if (count > leaf_points || points32.count() + int(count) > max_points) break;
            points32.add(roots.center(person), frontier.first(), int(count));
            frontier.pop();
        }
        points32.run();
    }

    // Decide a scored point in float32.
    int decide_point32(int point) const {
        const PointScores<float> scores{points32, point, roots.kernel_errors(person),
                                        roots.source_rounding(person), source_error};
        return decide(spec.rule, scores, band_center, band_half);
    }

    // Decide all scored points: in float32, then in float64; the others remain undecided.
    void decide_points(Outcome& out) {
        out.scored_points += uint64_t(points32.count());
        if (reference == undecided && spec.rule.kind == RuleKind::threshold &&
            count_decided_points(out))
            return;
        for (int p = 0; p < points32.count(); ++p) {
            int decision = decide_point32(p);
            if (decision == undecided || reference != undecided)
                points32.coordinates(p, coordinates.data());
            if (decision == undecided) decision = decide_point64(coordinates.data(), out);
            if (decision == undecided) {
                out.undecided_ids.push_back(assignment_id_of(coordinates.data()));
                continue;
            }
            ++out.counts[size_t(decision)];
            if (reference != undecided && decision != reference) {
                record_match(out, assignment_id_of(coordinates.data()));
                return;
            }
        }
    }

    // Count the points on each side of the threshold at once. Return false, and count none, if one
    // is too close to the threshold.
    bool count_decided_points(Outcome& out) const {
        const double radius = roots.kernel_errors(person)[0] + roots.source_rounding(person)[0] +
                              source_error + 4 * Format<float>::unit * std::abs(spec.rule.value);
        const float threshold32 = float(spec.rule.value), radius32 = float(radius * (1 + 0x1p-20));
        if (!(radius32 < std::numeric_limits<float>::max())) return false;
        const float* scores = points32.scores(0);
        int above = 0, below = 0;
        for (int p = 0; p < points32.count(); ++p) {
            // The second term covers the rounding of the difference.
            const float distance = scores[p] - threshold32,
                        limit = radius32 + 0x1p-22f * std::abs(distance);
            above += distance > limit;
            below += -distance > limit;
        }
        if (above + below != points32.count()) return false;
        out.counts[spec.rule.above] += uint64_t(above);
        out.counts[!spec.rule.above] += uint64_t(below);
        return true;
    }

    // Return the error bounds of the outputs in float64, computed on first use.
    const double* error64() {
        if (!errors64_ready) roots.point_errors64(person, errors64);
        errors64_ready = true;
        return errors64.back().data();
    }

    void score64(const int32_t* point_coordinates) {
        points64.clear();
        points64.add_listed(roots.center64(person), point_coordinates);
        points64.run();
    }

    // Decide one counterpart in float64. If the decision does not hold in the source's arithmetic,
    // it is not runtime-safe.
    int decide_point64(const int32_t* point_coordinates, Outcome& out) {
        score64(point_coordinates);
        const PointScores<double> with_source{points64, 0, error64(), roots.source_rounding(person),
                                              source_error};
        const int decision = decide(spec.rule, with_source, band_center, band_half);
        if (decision != undecided) return decision;
        out.runtime_safe = false;
        const PointScores<double> kernel_only{points64, 0, error64(), nullptr, 0.0};
        return decide(spec.rule, kernel_only, band_center, band_half);
    }

    // Update the cutoff from the scored points, and keep those that may be the worst.
    void collect_candidates(Outcome& out, const Objective& objective, Cutoff& cutoff) {
        out.scored_points += uint64_t(points32.count());
        const double* error = roots.kernel_errors(person);
        for (int p = 0; p < points32.count(); ++p) {
            ranges[size_t(p)] = objective.range(points32, p, error);
            if (cutoff.tolerance == 0) cutoff.best = std::max(cutoff.best, ranges[size_t(p)].first);
        }
        for (int p = 0; p < points32.count(); ++p) {
            if (!cutoff.admits(ranges[size_t(p)].second)) continue;
            points32.coordinates(p, coordinates.data());
            score64(coordinates.data());
            const auto [low, high] = objective.range(points64, 0, error64());
            cutoff.best = std::max(cutoff.best, low);
            if (!(high < cutoff.best))
                candidates.emplace_back(assignment_id_of(coordinates.data()), high);
        }
        if (candidates.size() > 4096 && candidates.size() > 2 * candidates_after_pruning) {
            const auto beaten = [&](const auto& candidate) {
                return candidate.second < cutoff.best;
            };
            candidates.erase(std::remove_if(candidates.begin(), candidates.end(), beaten),
                             candidates.end());
            candidates_after_pruning = candidates.size();
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

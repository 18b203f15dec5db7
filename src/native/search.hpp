// Search: bound-and-count over the lattice of one person; whatever stays open is handed back.
#pragma once
#include <chrono>

#include "frontier.hpp"
#include "judge.hpp"
#include "outputs.hpp"
#include "roots.hpp"
#include "trace.hpp"

namespace feta {
namespace FETA_ISA {

using Clock = std::chrono::steady_clock;

// Nodes of at most this many counterparts are scored, not split; it must not exceed most_points.
constexpr int leaf_points = 64;

// To find the worst, nodes of this many counterparts are bounded backward, too; in smaller ones that
// gains little. When counting, it pays for nodes that are too large to be scored (measured).
constexpr uint64_t worth_tightening = 32;

// Numbers that a person may leave open before the search gives up: 128 MB of them.
constexpr size_t most_open = size_t(1) << 24;

struct Limits {
    Clock::time_point deadline = Clock::time_point::max();
    uint64_t nodes = 0;        // bounded nodes before the rest is enumerated; 0: no cap
    uint64_t evaluations = 0;  // nodes and counterparts in all before giving up; 0: no limit
};

// What became of one person's question.
struct Outcome {
    std::vector<uint64_t> counts;  // by class, proved
    std::vector<uint64_t> open;    // lattice numbers that need exact arithmetic
    bool safe = true;              // the source's runtime is sure to agree on every counted point
    bool finished = true;          // false: the budget is spent
    bool found = false;            // a counterpart treated apart
    uint64_t number = 0;           // which one
    uint64_t bounded = 0, scored = 0;
    double
        at = 0,
        least = 0,
        most =
            0;  // along a real-valued attribute: where, and what the objective is there at least and anywhere at most
};

class Search {
  public:
    Search(const ModelSpec& spec, const Network<float>& single, const Network<double>& twice)
        : spec(spec), single(single), twice(twice), roots(spec, single, twice), zonotope(single),
          trace(twice), points(single), exact_points(twice), axes(single.axes),
          outputs(single.outputs()), ids(axes, 0), children(size_t(lanes) * axes), digits(axes),
          frontier(axes) {
        strides.assign(axes, 0);
        for (int a = axes - 1; a >= 0; --a) {
            if (spec.axes[a].real) {
                real_axis = a;
                real_slopes.assign(size_t(twice.width), 0.0);
                std::copy(spec.axes[a].slopes.begin(), spec.axes[a].slopes.end(),
                          real_slopes.begin());
                continue;  // it has no place in a lattice number
            }
            strides[a] = total;
            total *= uint64_t(spec.axes[a].values);
        }
        line.assign(size_t(twice.width), 0.0);
    }

    static constexpr int lanes = lanes_of<float>;
    Roots& people() { return roots; }

    // Turn to one of the people whose roots were bounded.
    void turn_to(int lane) {
        person = lane;
        ready64 = false;
    }

    // Count the classes of all counterparts; with `majority`, stop once a majority is certain.
    void tally(Outcome& out, bool majority, const Limits& limits) {
        start(out);
        leader_only = majority;
        if (settle_root(out) != open_class) return;
        while (!frontier.empty() && !(majority && settled(out.counts, total))) {
            if (late(out, limits)) return;
            expand(out, limits);
        }
    }

    // Find a counterpart of another class than `own`; for a tolerance, one outside the band center ± half.
    void find(Outcome& out, int own, double center, double half, const Limits& limits) {
        start(out);
        band_center = center;
        band_half = half;
        wanted = own;
        const int whole = settle_root(out);
        if (whole != open_class && whole != own) found(out, 0);
        while (!frontier.empty() && !out.found) {
            if (late(out, limits)) break;
            expand(out, limits);
        }
        wanted = open_class;
    }

    // Find all counterparts that may have the largest objective; none if it is certainly below `floor`. With
    // `nearly`, one that is certainly above the floor and short of the largest by float32's rounding will do:
    // where many are equal, that is much faster.
    void worst(Outcome& out, const Objective& goal, double floor, bool nearly,
               const Limits& limits) {
        start(out);
        Bar bar{floor, floor, nearly ? 8 * goal.error(roots.kernel32(person)) : 0.0};
        std::fill(ids.begin(), ids.end(), 0);
        frontier.push(ids.data(), goal.high(roots.bounds(), person));
        while (
            !frontier.empty() &&
            bar.matters(
                frontier
                    .key())) {  // else nothing open can reach what some point reaches, or the floor
            if (late(out, limits)) break;
            if (count_of(frontier.first()) <= leaf_points) {
                take_leaves(bar.best);
                goal_points(out, goal, bar);
                continue;
            }
            take_first();
            const int many = split();
            out.bounded += uint64_t(many);
            if (count_of(children.data()) >= worth_tightening) {
                zonotope.nodes<true>(roots.center(person), roots.box(person), children.data(),
                                     many);
                for (const float sign : {1.0f, -1.0f})
                    if (goal.looks(sign)) zonotope.tighten(spread(sign));
            } else
                zonotope.nodes<false>(roots.center(person), roots.box(person), children.data(),
                                      many);
            for (int l = 0; l < many; ++l) {
                const double high = goal.high(zonotope, l);
                if (bar.matters(high)) frontier.push(&children[size_t(l) * axes], high);
            }
        }
        for (const auto& [number, high] : kept)
            if (!(high < bar.best)) out.open.push_back(number);
        std::sort(out.open.begin(), out.open.end());
        if (out.open.size() == 1) {  // nothing is left to be settled
            found(out, out.open[0]);
            out.open.clear();
        }
    }

    // Whether a tally's leader stays so: all were counted, or the others cannot catch up.
    bool certain(const Outcome& out, uint64_t counted) const {
        return counted == total || settled(out.counts, total);
    }

    // Find the highest score (sign 1) or the lowest (−1) where one attribute is real-valued; it may find
    // nothing if sign · score is certainly below `floor`.
    void worst_real(Outcome& out, double sign, double floor, const Limits& limits) {
        start(out);
        const int axis = real_axis;
        double most = floor, error = 0;
        Bar bar{floor, floor, 0.0};
        std::fill(ids.begin(), ids.end(), 0);
        frontier.push(ids.data(),
                      sign > 0 ? roots.bounds().high()[person] : -roots.bounds().low()[person]);
        if (bar.matters(frontier.key())) {
            trace.set_slopes(real_slopes.data());
            error = error64()[0];
            trace.set_errors(errors64);
            bar.near =
                2 *
                error;  // what the best found may be short of, and what may be missing in its bound
        }
        while (!frontier.empty() && bar.matters(frontier.key())) {
            if (late(out, limits)) break;
            if (lines_of(frontier.first()) == 1) {
                int count = 0;
                std::vector<int32_t>& lines = children;
                while (count < Trace::lanes && !frontier.empty() && bar.matters(frontier.key()) &&
                       lines_of(frontier.first()) == 1) {
                    std::copy_n(frontier.first(), axes, lines.begin() + count * axes);
                    frontier.pop();
                    take_line(count, &lines[size_t(count) * axes]);
                    ++count;
                }
                trace.follow(count, sign);
                out.scored += uint64_t(count);
                for (int l = 0; l < count; ++l) {
                    const double ceiling = trace.ceiling_of(l) + error,
                                 high = ceiling + 0x1p-50 * std::abs(ceiling);
                    most = high == high ? std::max(most, high)
                                        : std::numeric_limits<double>::infinity();
                    if (!(trace.best_of(l) > out.least) && out.found) continue;
                    out.found = true;
                    out.least = trace.best_of(l);
                    out.at = trace.best_place(l);
                    for (int a = 0; a < axes; ++a)
                        digits[a] =
                            a == axis
                                ? 0
                                : single.trees[a]
                                      .order[single.trees[a].begin[lines[size_t(l) * axes + a]]];
                    out.number = number_of(digits.data());
                    bar.best = std::max(bar.best, out.least - error);
                }
                continue;
            }
            take_first();
            const int many = split();
            out.bounded += uint64_t(many);
            zonotope.nodes<true>(roots.center(person), roots.box(person), children.data(), many);
            zonotope.tighten(spread(float(sign)));
            for (int l = 0; l < many; ++l) {
                double high = sign > 0 ? zonotope.high()[l] : -zonotope.low()[l];
                // Networks trained to be fair have whole plateaus of one score.
                if (zonotope.constant(l)) high = sign * spec.layers.back().bias[0];
                if (bar.matters(high)) frontier.push(&children[size_t(l) * axes], high);
            }
        }
        out.most = std::max(most, bar.bound());
    }

    // Count listed assignments with their votes.
    void tally_listed(Outcome& out, const uint64_t* numbers, const uint64_t* votes, size_t many,
                      uint64_t all_votes, bool majority, const Limits& limits) {
        start(out);
        const int whole = judge(spec.rule, root(), band_center, band_half);
        if (whole != open_class) {
            out.counts[size_t(whole)] += all_votes;
            return;
        }
        for (size_t from = 0; from < many && !(majority && settled(out.counts, all_votes));
             from += most_points) {
            if (late(out, limits)) return;
            const int count = int(std::min<size_t>(most_points, many - from));
            points.clear();
            for (int p = 0; p < count; ++p) {
                take_digits(numbers[from + size_t(p)]);
                points.add_listed(roots.center(person), digits.data());
            }
            points.run();
            out.scored += uint64_t(count);
            for (int p = 0; p < count; ++p) {
                int of = judge_point(p);
                if (of == open_class) {
                    take_digits(numbers[from + size_t(p)]);
                    of = settle_point(digits.data(), out);
                }
                if (of == open_class)
                    out.open.push_back(numbers[from + size_t(p)]);
                else
                    out.counts[size_t(of)] += votes[from + size_t(p)];
            }
        }
    }

  private:
    const ModelSpec& spec;
    const Network<float>& single;
    const Network<double>& twice;
    Roots roots;
    Zonotope<float> zonotope;
    Trace trace;
    Points<float> points;
    Points<double> exact_points;
    int axes, outputs, person = 0;
    uint64_t total = 1;
    std::vector<uint64_t> strides;
    int real_axis = -1;
    std::vector<double> real_slopes, line;
    std::vector<int32_t> ids, children, digits, stack;
    bool ready64 = false;
    std::vector<std::vector<double>> errors64;
    double band_center = 0, band_half = 0, slack = 0;
    int wanted = open_class;
    bool leader_only = false;  // a certain majority is enough
    Frontier frontier;
    std::vector<std::pair<double, double>> ranges =
        std::vector<std::pair<double, double>>(most_points);
    std::vector<std::pair<uint64_t, double>>
        kept;              // numbers that may be the worst, and their highs
    size_t kept_last = 0;  // how many were left when those overtaken were last dropped
    uint64_t ticks = 0;

    // What an objective must reach to matter: the best that a point is sure to have, or the floor; where
    // nearly the best will do, a little more than the best of points beyond the floor.
    struct Bar {
        double floor, best, near;
        double bound() const { return best > floor ? best + near : best; }
        bool matters(double high) const {
            return near > 0 && best > floor ? !(high <= bound()) : !(high < best);
        }
    };

    // The combinations of the other attributes.
    uint64_t lines_of(const int32_t* node) const {
        uint64_t count = 1;
        for (int a = 0; a < axes; ++a)
            if (a != real_axis) count *= uint64_t(single.trees[a].count(node[a]));
        return count;
    }

    void take_line(int lane, const int32_t* node) {
        std::copy_n(roots.exact_center(person), single.neurons, line.begin());
        for (int a = 0; a < axes; ++a) {
            if (a == real_axis) continue;
            const AxisTree<double>& tree = twice.trees[a];
            const double* terms =
                &tree.terms[size_t(tree.order[tree.begin[node[a]]]) * twice.width];
            for (int n = 0; n < single.neurons; ++n) line[n] += terms[n];
        }
        const AxisSpec& real = spec.axes[real_axis];
        const AxisTree<float>& tree = single.trees[real_axis];
        trace.take(lane, line.data(), edge(real, tree.begin[node[real_axis]]),
                   edge(real, tree.end[node[real_axis]]));
    }

    void start(Outcome& out) {
        out.counts.assign(size_t(std::max(2, spec.rule.classes)), 0);
        out.open.clear();
        slack = spec.source_slack;
        out.safe = spec.source_slack < 1e300;
        out.finished = true;
        out.found = false;
        out.number = out.bounded = out.scored = 0;
        out.at = out.least = out.most = 0;
        leader_only = false;
        kept.clear();
        kept_last = 0;
        frontier.clear();
    }

    bool late(Outcome& out, const Limits& limits) {
        const bool spent = (limits.evaluations && out.bounded + out.scored >= limits.evaluations) ||
                           out.open.size() + kept.size() > most_open;
        const bool look = !(ticks++ & 63) && limits.deadline != Clock::time_point::max();
        if (spent || (look && Clock::now() >= limits.deadline)) out.finished = false;
        return !out.finished;
    }

    // Whether the class with most votes keeps the lead, whatever the rest would be decided.
    static bool settled(const std::vector<uint64_t>& counts, uint64_t all) {
        uint64_t best = 0, second = 0, sum = 0;
        for (const uint64_t one : counts) {
            sum += one;
            if (one > best) {
                second = best;
                best = one;
            } else
                second = std::max(second, one);
        }
        return best > second + (all - sum);
    }

    NodeOutputs<float> root() const {
        return {roots.bounds(), person, roots.source(person), slack};
    }

    int settle_root(Outcome& out) {
        out.bounded = 1;
        const int whole = judge(spec.rule, root(), band_center, band_half);
        if (whole != open_class) {
            out.counts[size_t(whole)] += total;
            return whole;
        }
        std::fill(ids.begin(), ids.end(), 0);
        frontier.push(ids.data(), 0.0);
        return open_class;
    }

    // How promising a node is: nearer to certain first, or nearer to the other side first.
    double key_of(const NodeOutputs<float>& node) const {
        double key = 0;
        if (spec.rule.kind == RuleKind::threshold) {
            const double distance = node.value(0) - spec.rule.value;
            const bool own_above = (wanted == 1) == spec.rule.above;
            if (wanted == open_class)
                key = std::abs(distance) / (node.reach(0) + 1e-300);
            else
                key = (own_above ? -distance : distance) + node.reach(0);
        }
        if (spec.rule.kind == RuleKind::tolerance)
            key = std::abs(node.value(0) - band_center) + node.reach(0);
        return key == key ? key : 0.0;
    }

    uint64_t count_of(const int32_t* node) const {
        uint64_t count = 1;
        for (int a = 0; a < axes; ++a) count *= uint64_t(single.trees[a].count(node[a]));
        return count;
    }

    uint64_t number_of(const int32_t* places) const {
        uint64_t number = 0;
        for (int a = 0; a < axes; ++a) number += strides[a] * uint64_t(places[a]);
        return number;
    }

    void take_digits(uint64_t number) {
        for (int a = 0; a < axes; ++a)
            digits[a] = int32_t(number / strides[a] % uint64_t(spec.axes[a].values));
    }

    void take_first() {
        std::copy_n(frontier.first(), axes, ids.begin());
        frontier.pop();
    }

    // Split the node in `ids` again and again, into `children`: as many as there are lanes, or fewer.
    int split() {
        std::copy_n(ids.begin(), axes, children.begin());
        int many = 1;
        while (2 * many <= lanes) {
            int axis = -1;
            double most = -1;
            for (int a = 0; a < axes; ++a) {
                const AxisTree<float>& tree = single.trees[a];
                double weight = -1;
                for (int m = 0; m < many; ++m) {
                    const int32_t id = children[size_t(m) * axes + a];
                    if (tree.left[id] >= 0) weight = std::max(weight, tree.weight[id]);
                }
                if (weight > most) most = weight, axis = a;
            }
            if (axis < 0) break;
            const AxisTree<float>& tree = single.trees[axis];
            const int before = many;
            for (int m = 0; m < before; ++m) {
                int32_t* one = &children[size_t(m) * axes];
                const int32_t parent = one[axis];
                if (tree.left[parent] < 0) continue;
                int32_t* other = &children[size_t(many++) * axes];
                std::copy_n(one, axes, other);
                one[axis] = tree.left[parent];
                other[axis] = tree.right[parent];
            }
        }
        return many;
    }

    // Take the first open node apart: into several, or into its counterparts.
    void expand(Outcome& out, const Limits& limits) {
        if (count_of(frontier.first()) <= leaf_points) {
            take_leaves(-std::numeric_limits<double>::infinity());
            score(out);
            return;
        }
        take_first();
        if (limits.nodes && out.bounded >= limits.nodes) {  // bounds do not pay here: enumerate
            enumerate(out, limits);
            return;
        }
        const int many = split();
        out.bounded += uint64_t(many);
        const bool twice_bounded =
            spec.rule.kind == RuleKind::threshold && count_of(children.data()) > leaf_points;
        if (!twice_bounded) {
            zonotope.nodes<false>(roots.center(person), roots.box(person), children.data(), many);
            for (int l = 0; l < many && !out.found; ++l)
                if (!count_node(out, l)) push_node(l);
            return;
        }
        zonotope.nodes<true>(roots.center(person), roots.box(person), children.data(), many);
        int left = 0, open[lanes];
        double keys[lanes];
        for (int l = 0; l < many && !out.found; ++l)
            if (!count_node(out, l)) {
                keys[left] = key_of(node(l));
                open[left++] = l;
            }
        if (left == 0 || out.found || (leader_only && settled(out.counts, total))) return;
        zonotope.tighten(zonotope.sides(spec.rule.value));
        for (int k = 0; k < left && !out.found; ++k)
            if (!count_node(out, open[k]))
                frontier.push(&children[size_t(open[k]) * axes], keys[k]);
    }

    NodeOutputs<float> node(int lane) const {
        return {zonotope, lane, roots.source(person), slack};
    }

    void push_node(int lane) { frontier.push(&children[size_t(lane) * axes], key_of(node(lane))); }

    // Count a bounded node if it is decided.
    bool count_node(Outcome& out, int lane) {
        const int of = judge(spec.rule, node(lane), band_center, band_half);
        if (of == open_class) return false;
        const int32_t* child = &children[size_t(lane) * axes];
        out.counts[size_t(of)] += count_of(child);
        if (wanted != open_class && of != wanted) {
            for (int a = 0; a < axes; ++a)
                digits[a] = single.trees[a].order[single.trees[a].begin[child[a]]];
            found(out, number_of(digits.data()));
        }
        return true;
    }

    // Score a node's counterparts without bounding: small parts of it, one after the other.
    void enumerate(Outcome& out, const Limits& limits) {
        stack.assign(ids.begin(), ids.end());
        points.clear();
        while (!stack.empty() && !out.found) {
            std::copy(stack.end() - axes, stack.end(), ids.begin());
            stack.resize(stack.size() - size_t(axes));
            const uint64_t count = count_of(ids.data());
            if (count > most_points) {
                halve();
                continue;
            }
            if (points.count() + int(count) > most_points) {
                if (late(out, limits)) return;
                points.run();
                score(out);
                points.clear();
            }
            points.add(roots.center(person), ids.data(), int(count));
        }
        if (points.count() && !out.found) {
            points.run();
            score(out);
        }
    }

    // Put the halves of the node in `ids` on the stack, split where most values are.
    void halve() {
        int axis = 0;
        for (int a = 1; a < axes; ++a)
            if (single.trees[a].count(ids[a]) > single.trees[axis].count(ids[axis])) axis = a;
        const int32_t parent = ids[axis];
        for (const int32_t child :
             {single.trees[axis].right[parent], single.trees[axis].left[parent]}) {
            ids[axis] = child;
            stack.insert(stack.end(), ids.begin(), ids.end());
        }
    }

    static void found(Outcome& out, uint64_t number) {
        out.found = true;
        out.number = number;
    }

    // Take the first open nodes as long as they are small and fit.
    void take_leaves(double least_key) {
        points.clear();
        while (!frontier.empty() && !(frontier.key() < least_key)) {
            const uint64_t count = count_of(frontier.first());
            if (count > leaf_points || points.count() + int(count) > most_points) break;
            points.add(roots.center(person), frontier.first(), int(count));
            frontier.pop();
        }
        points.run();
    }

    int judge_point(int point) const {
        const PointOutputs<float> lane{points, point, roots.kernel32(person), roots.source(person),
                                       slack};
        return judge(spec.rule, lane, band_center, band_half);
    }

    void score(Outcome& out) {
        out.scored += uint64_t(points.count());
        if (wanted == open_class && spec.rule.kind == RuleKind::threshold && count_points(out))
            return;
        for (int p = 0; p < points.count(); ++p) {
            int of = judge_point(p);
            if (of == open_class || wanted != open_class) points.digits(p, digits.data());
            if (of == open_class) of = settle_point(digits.data(), out);
            if (of == open_class) {
                out.open.push_back(number_of(digits.data()));
                continue;
            }
            ++out.counts[size_t(of)];
            if (wanted != open_class && of != wanted) {
                found(out, number_of(digits.data()));
                return;
            }
        }
    }

    // Count scores against a threshold all at once; false if any is too near to tell.
    bool count_points(Outcome& out) const {
        const double reach = roots.kernel32(person)[0] + roots.source(person)[0] + slack +
                             4 * Format<float>::unit * std::abs(spec.rule.value);
        const float from = float(spec.rule.value), far = float(reach * (1 + 0x1p-20));
        if (!(far < std::numeric_limits<float>::max())) return false;
        const float* scores = points.output(0);
        // The difference is rounded too: a unit of both sizes more.
        int above = 0, below = 0;
        for (int p = 0; p < points.count(); ++p) {
            const float distance = scores[p] - from, near = far + 0x1p-22f * std::abs(distance);
            above += distance > near;
            below += -distance > near;
        }
        if (above + below != points.count()) return false;
        out.counts[spec.rule.above] += uint64_t(above);
        out.counts[!spec.rule.above] += uint64_t(below);
        return true;
    }

    // Error bounds of the outputs in float64, made when first asked for.
    const double* error64() {
        if (!ready64) roots.point_errors(person, errors64);
        ready64 = true;
        return errors64.back().data();
    }

    void score_exactly(const int32_t* places) {
        exact_points.clear();
        exact_points.add_listed(roots.exact_center(person), places);
        exact_points.run();
    }

    // Score one counterpart in float64; open if even that leaves a doubt.
    int settle_point(const int32_t* places, Outcome& out) {
        score_exactly(places);
        const PointOutputs<double> with_source{exact_points, 0, error64(), roots.source(person),
                                               slack};
        const int sure = judge(spec.rule, with_source, band_center, band_half);
        if (sure != open_class) return sure;
        out.safe = false;
        const PointOutputs<double> alone{exact_points, 0, error64(), nullptr, 0.0};
        return judge(spec.rule, alone, band_center, band_half);
    }

    void goal_points(Outcome& out, const Objective& goal, Bar& bar) {
        out.scored += uint64_t(points.count());
        const double* error = roots.kernel32(person);
        for (int p = 0; p < points.count(); ++p) {
            ranges[size_t(p)] = goal.range(points, p, error);
            if (bar.near == 0) bar.best = std::max(bar.best, ranges[size_t(p)].first);
        }
        for (int p = 0; p < points.count(); ++p) {
            if (!bar.matters(ranges[size_t(p)].second)) continue;
            points.digits(p, digits.data());
            score_exactly(digits.data());
            const auto [low, high] = goal.range(exact_points, 0, error64());
            bar.best = std::max(bar.best, low);
            if (!(high < bar.best)) kept.emplace_back(number_of(digits.data()), high);
        }
        if (kept.size() > 4096 && kept.size() > 2 * kept_last) {  // drop what was overtaken
            const auto overtaken = [&](const auto& one) { return one.second < bar.best; };
            kept.erase(std::remove_if(kept.begin(), kept.end(), overtaken), kept.end());
            kept_last = kept.size();
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Search: bound-and-count over the lattice of one person; whatever stays open is handed back.
#pragma once
#include <chrono>

#include "judge.hpp"
#include "lanes.hpp"

namespace feta {
namespace FETA_ISA {

using Clock = std::chrono::steady_clock;

struct Limits {
    Clock::time_point deadline = Clock::time_point::max();
    uint64_t nodes = 0;        // bounded nodes before the rest is enumerated; 0: no cap
    uint64_t evaluations = 0;  // nodes and counterparts in all before giving up; 0: no limit
};

// What became of one person's question.
struct Outcome {
    std::vector<uint64_t> counts;   // by class, proved
    std::vector<uint64_t> open;     // lattice numbers that need exact arithmetic
    bool safe = true;               // the source's runtime is sure to agree on every counted point
    bool finished = true;           // false: the deadline passed
    bool found = false;             // a counterpart treated apart
    uint64_t number = 0;            // which one
    uint64_t bounded = 0, scored = 0;
};

// Directions · outputs + offsets, the largest of them, or the smallest.
struct ObjectiveSpec {
    int rows = 0;
    std::vector<double> directions, offsets;
    bool least = false;
};

class Search {
  public:
    Search(const ModelSpec& spec, const Network<float>& single, const Network<double>& twice)
        : spec(spec), single(single), twice(twice), zonotope(single), lanes(single), points(twice),
          axes(single.axes), outputs(single.outputs()), person32(single.width), box32(single.width),
          person64(twice.width), sizes(single.neurons), ids(axes), source(outputs), kernel32(outputs),
          kernel64(outputs), frontier(axes), leaf_digits(axes) {
        slack = spec.source_slack;
        reach.before.resize(single.layers.size());
        reach.after.resize(single.layers.size());
        for (int a = 0; a < axes; ++a) turns.push_back(a);
        strides.assign(axes, 1);
        for (int a = axes - 2; a >= 0; --a) strides[a] = strides[a + 1] * spec.axes[a + 1].values;
        for (int a = 0; a < axes; ++a) total *= spec.axes[a].values;
        axis_sizes.assign(single.neurons, 0.0);
        for (const AxisSpec& axis : spec.axes)
            for (int n = 0; n < single.neurons; ++n) {
                double largest = 0;
                for (int v = 0; v < axis.values; ++v) largest = std::max(largest, axis.sizes[size_t(v) * single.neurons + n]);
                axis_sizes[n] += largest;
            }
    }

    // Take a person: first-layer constants without the bias, and their terms' sizes.
    void take(const double* constants, const double* constant_sizes) {
        const double own = gamma(Format<double>::unit, spec.columns, kernel_extra);
        for (int n = 0; n < single.neurons; ++n) {
            const double c = constants[n] + spec.bias[n];
            sizes[n] = constant_sizes[n] + axis_sizes[n] + std::abs(spec.bias[n]);
            person64[n] = c;
            person32[n] = float(c);
            box32[n] = float((own * sizes[n] + 2 * Format<float>::unit * std::abs(c)) * (1 + 0x1p-20)) +
                       float(2 * Format<float>::tiny);
        }
        std::fill(ids.begin(), ids.end(), 0);
        zonotope.run(person32.data(), box32.data(), ids.data(), &reach);
        ready32 = ready64 = false;
        errors(source, spec.source_unit, spec.source_tiny, spec.source_extra, spec.columns, true);
    }

    // Count the classes of all counterparts; with `majority`, stop once a majority is certain.
    void tally(Outcome& out, bool majority, const Limits& limits) {
        start(out);
        frontier.clear();
        settle_or_push(out, [](int) { return false; });
        const auto enough = [&] { return majority && decided(out.counts); };
        while (!frontier.empty() && !enough()) {
            if (late(out, limits)) return;
            expand(out, limits, [](uint64_t, int) { return false; }, [](int) { return false; });
        }
    }

    // Find a counterpart of another class than `own`; for a tolerance, one too far from `score`.
    void find(Outcome& out, int own, double score, double epsilon, double doubt, const Limits& limits) {
        start(out);
        slack = spec.source_slack + doubt;  // what the source may add to each score's error
        own_score = score;
        own_epsilon = epsilon;
        frontier.clear();
        wanted = own;
        const auto node_found = [&](int found) {
            if (found == own) return false;
            out.found = true;
            out.number = number_of(ids.data());
            return true;
        };
        const auto point_found = [&](uint64_t number, int found) {
            if (found == own) return false;
            out.found = true;
            out.number = number;
            return true;
        };
        settle_or_push(out, node_found);
        while (!frontier.empty() && !out.found) {
            if (late(out, limits)) break;
            expand(out, limits, point_found, node_found);
        }
        wanted = open_class;
        slack = spec.source_slack;
    }

    // Find all counterparts that may have the largest objective.
    void worst(Outcome& out, const ObjectiveSpec& goal, const Limits& limits) {
        start(out);
        objective = &goal;
        kernel_errors();
        frontier.clear();
        double best = -std::numeric_limits<double>::infinity();
        kept.clear();
        kept_floor = 0;
        frontier.push(ids.data(), goal_high());
        while (!frontier.empty()) {
            if (late(out, limits)) break;
            if (frontier.pop(ids) < best) break;  // nothing open can reach what some point reaches
            const uint64_t count = count_of(ids.data());
            if (count <= most_lanes) {
                goal_leaf(int(count), out, best);
                continue;
            }
            const int axis = split_axis();
            const int32_t parent = ids[axis];
            for (const int32_t child : {single.trees[axis].left[parent], single.trees[axis].right[parent]}) {
                ids[axis] = child;
                ++out.bounded;
                zonotope.run(person32.data(), box32.data(), ids.data(), nullptr);
                const double high = goal_high();
                if (!(high < best)) frontier.push(ids.data(), high);
            }
        }
        for (const auto& [number, high] : kept)
            if (!(high < best)) out.open.push_back(number);
        std::sort(out.open.begin(), out.open.end());
        objective = nullptr;
    }

    // Count listed assignments with their votes.
    void tally_listed(Outcome& out, const int32_t* digits, const uint64_t* numbers, const uint64_t* votes,
                      size_t many, uint64_t all_votes, bool majority, const Limits& limits) {
        start(out);
        const int whole = judge_node();
        if (whole != open_class) {
            out.counts[whole] += all_votes;
            return;
        }
        for (size_t from = 0; from < many && !(majority && decided_of(out.counts, all_votes)); from += most_lanes) {
            if (late(out, limits)) return;
            const int count = int(std::min<size_t>(most_lanes, many - from));
            const float* found = lanes.listed(person32.data(), digits + from * axes, count);
            out.scored += count;
            for (int l = 0; l < count; ++l) {
                const int found_class = settle_lane(found, l, digits + (from + l) * axes, out);
                if (found_class == open_class)
                    out.open.push_back(numbers[from + l]);
                else
                    out.counts[found_class] += votes[from + l];
            }
        }
    }

  private:
    using Ids = const int32_t*;  // one tree node an axis

    // The open nodes, the one with the largest key first. Memory is kept from person to person.
    class Frontier {
      public:
        explicit Frontier(int axes) : axes(axes) {}
        bool empty() const { return heap.empty(); }
        void clear() {
            heap.clear();
            free.clear();
            pool.clear();
        }
        void push(Ids ids, double key) {
            uint32_t slot;
            if (free.empty()) {
                slot = uint32_t(pool.size() / size_t(axes));
                pool.resize(pool.size() + size_t(axes));
            } else {
                slot = free.back();
                free.pop_back();
            }
            std::copy(ids, ids + axes, pool.begin() + ptrdiff_t(slot) * axes);
            heap.push_back({key, slot});
            std::push_heap(heap.begin(), heap.end());
        }
        double pop(std::vector<int32_t>& ids) {
            std::pop_heap(heap.begin(), heap.end());
            const Entry top = heap.back();
            heap.pop_back();
            free.push_back(top.slot);
            const auto from = pool.begin() + ptrdiff_t(top.slot) * axes;
            std::copy(from, from + axes, ids.begin());
            return top.key;
        }

      private:
        struct Entry {
            double key;
            uint32_t slot;
            bool operator<(const Entry& other) const { return key < other.key; }
        };
        int axes;
        std::vector<Entry> heap;
        std::vector<uint32_t> free;
        std::vector<int32_t> pool;
    };

    const ModelSpec& spec;
    const Network<float>& single;
    const Network<double>& twice;
    Zonotope<float> zonotope;
    Lanes<float> lanes;
    Lanes<double> points;
    int axes, outputs;
    uint64_t total = 1;
    std::vector<uint64_t> strides;
    std::vector<float> person32, box32;
    std::vector<double> person64, sizes, axis_sizes;
    std::vector<int32_t> ids;
    Reach reach;
    std::vector<double> source, kernel32, kernel64, scratch, scratch2;
    bool ready32 = false, ready64 = false;
    double own_score = 0, own_epsilon = 0, slack = 0;
    int wanted = open_class;
    const ObjectiveSpec* objective = nullptr;
    Frontier frontier;
    std::vector<std::pair<uint64_t, double>> kept;  // numbers that may be the worst, and their highs
    size_t kept_floor = 0;
    std::vector<int32_t> leaf_digits;
    std::vector<int> turns;  // the axes, as the lanes of the last leaf have them
    uint64_t ticks = 0;

    void start(Outcome& out) {
        out.counts.assign(size_t(std::max(2, spec.rule.classes)), 0);
        out.open.clear();
        out.safe = spec.source_slack < 1e300;
        out.finished = true;
        out.found = false;
        out.number = out.bounded = out.scored = 0;
    }

    bool late(Outcome& out, const Limits& limits) {
        const bool spent = limits.evaluations && out.bounded + out.scored >= limits.evaluations;
        const bool look = !(ticks++ & 63) && limits.deadline != Clock::time_point::max();
        if (spent || (look && Clock::now() >= limits.deadline)) out.finished = false;
        return !out.finished;
    }

    bool decided(const std::vector<uint64_t>& counts) const { return decided_of(counts, total); }

    // Whether the class with most votes keeps the lead, whatever the rest would be decided.
    static bool decided_of(const std::vector<uint64_t>& counts, uint64_t all) {
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

    // Error bounds of the outputs for any point of the lattice, in a given arithmetic.
    void errors(std::vector<double>& out, double unit, double tiny, int extra, int first_terms, bool overflow) {
        scratch.resize(single.neurons);
        const double first = gamma(unit, first_terms, extra) + gamma(Format<double>::unit, spec.columns, kernel_extra);
        bool lost = false;
        for (int n = 0; n < single.neurons; ++n) {
            const double size = sizes[n] + spec.folded[n];
            scratch[n] = (first * size + 5 * (spec.columns + 1) * tiny) * (1 + 0x1p-30);
            lost |= overflow && !(size < spec.source_huge);
        }
        for (size_t k = 0; k < single.layers.size(); ++k) {
            const Layer<double>& layer = twice.layers[k];
            const Activation<double>& bend = layer.activation;
            const double rounding = gamma(unit, layer.inputs, extra), small = gamma(unit, 1, extra);
            scratch2.assign(layer.width, 0.0);
            for (int i = 0; i < layer.inputs; ++i) {
                double e = scratch[i];
                if (bend.rounds || bend.steepest[i] != 1) {
                    const double before = bend.steepest[i] * (reach.before[k][i] + e) + bend.offset[i];
                    e = e * bend.steepest[i] * (1 + 8 * unit) + (bend.rounds ? small * before + 5 * tiny : 0);
                }
                const double in = e + rounding * (reach.after[k][i] + 2 * e) + tiny;
                const double* column = &layer.exact_sizes[size_t(i) * layer.width];
                for (int o = 0; o < layer.width; ++o) scratch2[o] += in * column[o];
            }
            for (int o = 0; o < layer.width; ++o) {
                scratch2[o] += rounding * layer.exact_bias[o] + 5 * (layer.inputs + 1) * tiny;
                scratch2[o] *= 1 + 0x1p-30;
                lost |= overflow && !(scratch2[o] < rounding * spec.source_huge);
            }
            scratch.swap(scratch2);
        }
        for (int o = 0; o < outputs; ++o) out[o] = lost ? std::numeric_limits<double>::infinity() : scratch[o];
    }

    void kernel_errors() {
        if (!ready32) errors(kernel32, Format<float>::unit, Format<float>::tiny, kernel_extra, axes + 2, false);
        ready32 = true;
    }
    void exact_errors() {
        if (!ready64) errors(kernel64, Format<double>::unit, Format<double>::tiny, kernel_extra, spec.columns, false);
        ready64 = true;
    }

    // The outputs over the node that the zonotope was last run on.
    struct NodeOutputs {
        Zonotope<float>& z;
        int axes;
        const std::vector<double>& margin;
        double slack;
        double value(int o) const { return z.center()[o]; }
        double reach(int o) const {
            double sum = z.box()[o];
            for (int a = 0; a < axes; ++a) sum += std::abs(double(z.generator(a)[o]));
            return sum * (1 + 0x1p-30) + margin[o] + slack;
        }
        double reach(int one, int other) const {
            double sum = double(z.box()[one]) + z.box()[other];
            for (int a = 0; a < axes; ++a) sum += std::abs(double(z.generator(a)[one]) - z.generator(a)[other]);
            return sum * (1 + 0x1p-30) + margin[one] + margin[other] + slack;
        }
    };

    template <class T> struct PointOutputs {
        const T* values;  // of one lane, outputs most_lanes apart
        const std::vector<double>& error;
        const std::vector<double>* margin;  // of the source, if it has to be cleared as well
        double slack;
        double value(int o) const { return values[size_t(o) * most_lanes]; }
        double off(int o) const { return error[o] + (margin ? (*margin)[o] : 0.0); }
        double reach(int o) const { return off(o) + slack; }
        double reach(int one, int other) const {
            return off(one) + off(other) + slack + 0x1p-50 * (std::abs(value(one)) + std::abs(value(other)));
        }
    };

    int judge_node() {
        return judge(spec.rule, NodeOutputs{zonotope, axes, source, slack}, own_score, own_epsilon);
    }

    // How promising the node is: nearer to certain first, or nearer to the other side first.
    double key_of() {
        const NodeOutputs out{zonotope, axes, source, 0};
        if (spec.rule.kind == RuleKind::threshold) {
            const double distance = out.value(0) - spec.rule.value;
            if (wanted == open_class) return std::abs(distance) / (out.reach(0) + 1e-300);
            const bool own_above = (wanted == 1) == spec.rule.above;
            return (own_above ? -distance : distance) + out.reach(0);
        }
        if (spec.rule.kind == RuleKind::tolerance) return std::abs(out.value(0) - own_score) + out.reach(0);
        return 0;
    }

    uint64_t count_of(Ids node) const {
        uint64_t count = 1;
        for (int a = 0; a < axes; ++a) count *= uint64_t(single.trees[a].count(node[a]));
        return count;
    }

    uint64_t number_of(Ids node) const {
        uint64_t number = 0;
        for (int a = 0; a < axes; ++a) {
            const AxisTree<float>& tree = single.trees[a];
            number += strides[a] * uint64_t(tree.order[tree.begin[node[a]]]);
        }
        return number;
    }

    // The axis of the node in `ids` whose spread matters most.
    int split_axis() const {
        int best = -1;
        float most = -1;
        for (int a = 0; a < axes; ++a) {
            const AxisTree<float>& tree = single.trees[a];
            if (tree.left[ids[a]] >= 0 && tree.weight[ids[a]] > most) {
                most = tree.weight[ids[a]];
                best = a;
            }
        }
        return best;
    }

    // Judge the node in `ids`, on which the zonotope was just run; push it if it stays open.
    template <class NodeFound> bool settle_or_push(Outcome& out, NodeFound node_found) {
        ++out.bounded;
        const int found = judge_node();
        if (found == open_class) {
            frontier.push(ids.data(), key_of());
            return false;
        }
        out.counts[found] += count_of(ids.data());
        return node_found(found);
    }

    // Take the first open node apart: into its two halves, or into its counterparts.
    template <class PointFound, class NodeFound>
    void expand(Outcome& out, const Limits& limits, PointFound point_found, NodeFound node_found) {
        const double key = frontier.pop(ids);
        const uint64_t count = count_of(ids.data());
        if (count <= most_lanes) {
            leaf(int(count), out, point_found);
            return;
        }
        const int axis = split_axis();
        const AxisTree<float>& tree = single.trees[axis];
        const int32_t parent = ids[axis];
        for (const int32_t child : {tree.left[parent], tree.right[parent]}) {
            ids[axis] = child;
            if (limits.nodes && out.bounded >= limits.nodes) {  // bounds do not pay here: enumerate
                frontier.push(ids.data(), key);
                continue;
            }
            zonotope.run(person32.data(), box32.data(), ids.data(), nullptr);
            if (settle_or_push(out, node_found)) return;
        }
    }

    // Score the counterparts of the node in `ids`.
    template <class PointFound> void leaf(int count, Outcome& out, PointFound point_found) {
        kernel_errors();
        const float* found = lanes.combinations(person32.data(), ids.data(), longest_first(), count);
        out.scored += uint64_t(count);
        if (wanted == open_class && spec.rule.kind == RuleKind::threshold && count_lanes(found, count, out)) return;
        for (int l = 0; l < count; ++l) {
            const PointOutputs<float> lane{found + l, kernel32, &source, slack};
            int decided_class = judge(spec.rule, lane, own_score, own_epsilon);
            uint64_t number = 0;
            if (decided_class == open_class || wanted != open_class) {
                number = lane_number(l);
                if (decided_class == open_class) decided_class = settle_point(leaf_digits.data(), out);
            }
            if (decided_class == open_class) {
                out.open.push_back(number);
                continue;
            }
            ++out.counts[decided_class];
            if (point_found(number, decided_class)) return;
        }
    }

    // Count scores against a threshold all at once; false if any is too near to tell.
    bool count_lanes(const float* scores, int count, Outcome& out) const {
        const double reach = kernel32[0] + source[0] + slack + 4 * Format<float>::unit * std::abs(spec.rule.value);
        const float from = float(spec.rule.value), far = float(reach * (1 + 0x1p-20));
        if (!(far < std::numeric_limits<float>::max())) return false;
        // The difference is rounded too: a unit of both sizes more.
        int above = 0, below = 0;
        for (int l = 0; l < count; ++l) {
            const float distance = scores[l] - from, near = far + 0x1p-22f * std::abs(distance);
            above += distance > near;
            below += -distance > near;
        }
        if (above + below != count) return false;
        out.counts[spec.rule.above] += uint64_t(above);
        out.counts[!spec.rule.above] += uint64_t(below);
        return true;
    }

    // The axes of the node in `ids`, those with most values first.
    const int* longest_first() {
        const auto many = [&](int a) { return single.trees[a].count(ids[a]); };
        std::sort(turns.begin(), turns.end(), [&](int a, int b) { return many(a) > many(b) || (many(a) == many(b) && a < b); });
        return turns.data();
    }

    // The lattice number of a lane of the node in `ids`; its digits go to `leaf_digits`.
    uint64_t lane_number(int lane) {
        uint64_t number = 0;
        for (const int a : turns) {
            const AxisTree<float>& tree = single.trees[a];
            const int many = tree.count(ids[a]);
            leaf_digits[a] = tree.order[tree.begin[ids[a]] + lane % many];
            lane /= many;
            number += strides[a] * uint64_t(leaf_digits[a]);
        }
        return number;
    }

    int settle_lane(const float* found, int l, const int32_t* digits, Outcome& out) {
        kernel_errors();
        const PointOutputs<float> lane{found + l, kernel32, &source, slack};
        const int decided_class = judge(spec.rule, lane, own_score, own_epsilon);
        return decided_class != open_class ? decided_class : settle_point(digits, out);
    }

    // Score one counterpart in float64; open if even that leaves a doubt.
    int settle_point(const int32_t* digits, Outcome& out) {
        exact_errors();
        const double* found = points.listed(person64.data(), digits, 1);
        const PointOutputs<double> with_source{found, kernel64, &source, slack};
        const int sure = judge(spec.rule, with_source, own_score, own_epsilon);
        if (sure != open_class) return sure;
        out.safe = false;
        const PointOutputs<double> alone{found, kernel64, nullptr, 0.0};
        return judge(spec.rule, alone, own_score, own_epsilon);
    }

    // The objective's upper bound over the node that the zonotope was last run on.
    double goal_high() {
        double result = objective->least ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
        for (int r = 0; r < objective->rows; ++r) {
            const double* direction = &objective->directions[size_t(r) * outputs];
            double middle = objective->offsets[r], size = std::abs(middle), wide = 0;
            for (int o = 0; o < outputs; ++o) {
                middle += direction[o] * zonotope.center()[o];
                size += std::abs(direction[o] * zonotope.center()[o]);
                wide += std::abs(direction[o]) * zonotope.box()[o];
            }
            for (int a = 0; a < axes; ++a) {
                double sum = 0;
                for (int o = 0; o < outputs; ++o) sum += direction[o] * zonotope.generator(a)[o];
                wide += std::abs(sum);
            }
            const double high = middle + wide * (1 + 0x1p-30) + 0x1p-48 * size;
            result = objective->least ? std::min(result, high) : std::max(result, high);
        }
        return result;
    }

    template <class T> void goal_range(const T* values, const std::vector<double>& error, double& low, double& high) const {
        const double worst_of = std::numeric_limits<double>::infinity();
        low = high = objective->least ? worst_of : -worst_of;
        for (int r = 0; r < objective->rows; ++r) {
            const double* direction = &objective->directions[size_t(r) * outputs];
            double middle = objective->offsets[r], size = std::abs(middle), wide = 0;
            for (int o = 0; o < outputs; ++o) {
                const double value = values[size_t(o) * most_lanes];
                middle += direction[o] * value;
                size += std::abs(direction[o] * value);
                wide += std::abs(direction[o]) * error[o];
            }
            wide = wide * (1 + 0x1p-30) + 0x1p-48 * size;
            low = objective->least ? std::min(low, middle - wide) : std::max(low, middle - wide);
            high = objective->least ? std::min(high, middle + wide) : std::max(high, middle + wide);
        }
    }

    void goal_leaf(int count, Outcome& out, double& best) {
        const float* found = lanes.combinations(person32.data(), ids.data(), longest_first(), count);
        out.scored += uint64_t(count);
        double low, high;
        for (int l = 0; l < count; ++l) {
            goal_range(found + l, kernel32, low, high);
            best = std::max(best, low);
        }
        for (int l = 0; l < count; ++l) {
            goal_range(found + l, kernel32, low, high);
            if (high < best) continue;
            const uint64_t number = lane_number(l);
            exact_errors();
            goal_range(points.listed(person64.data(), leaf_digits.data(), 1), kernel64, low, high);
            best = std::max(best, low);
            if (!(high < best)) kept.emplace_back(number, high);
        }
        if (kept.size() > 4096 && kept.size() > 2 * kept_floor) {  // drop what was overtaken
            const auto overtaken = [&](const auto& one) { return one.second < best; };
            kept.erase(std::remove_if(kept.begin(), kept.end(), overtaken), kept.end());
            kept_floor = kept.size();
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// The search for a proof: boxes with the most undecided people are cut first.
#pragma once
#include <chrono>
#include <queue>

#include "branch_counting.hpp"

namespace feta {
namespace FETA_ISA {

inline constexpr uint8_t branch_each = 8, branch_listed = 16;  // codes of leaves, as in tree.py
inline constexpr size_t branch_most_nodes = size_t(1) << 25;   // about 1.5 GB
inline constexpr int branch_look = 8;  // boxes between two looks at the clock

// A sum of numbers between 0 and 1, exact in multiples of 2^-120.
class BranchFixed {
  public:
    void add(double x, bool up) { total += fixed(x, up); }
    void remove(double x, bool up) { total -= fixed(x, up); }
    BranchSum words() const { return {uint64_t(total >> 64), uint64_t(total)}; }

  private:
    unsigned __int128 total = 0;

    static unsigned __int128 fixed(double x, bool up) {
        if (!(x > 0)) return 0;
        const double scaled = std::ldexp(x, 120);
        auto whole = (unsigned __int128)scaled;
        return whole + (up && double(whole) < scaled ? 1 : 0);
    }
};

class IsaBranch final : public Branch {
  public:
    IsaBranch(const BranchSpec& from, const BranchOptions& wanted)
        : spec(from), options(wanted), bounds(spec) {
        hull_low.resize(spec.layers.size());
        hull_high.resize(spec.layers.size());
        for (const BranchAxis& axis : spec.axes) {
            root.low.push_back(axis.low);
            root.high.push_back(axis.high);
        }
        const size_t n = spec.neurons();
        read.assign(n, 0);
        for (size_t v = 0; v < spec.combinations; ++v)
            for (size_t j = 0; j < n; ++j)
                read[j] |= spec.combination_rows[v * n + j] != spec.combination_rows[j];
        tree.emplace_back();
        add(0, root, code_after(1.0, false));
    }

    void step(double seconds) override {
        const auto start = std::chrono::steady_clock::now();
        for (int count = 1; !waiting.empty() && !full(); ++count) {
            cut();
            if (count % branch_look == 0 &&
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >=
                    seconds)
                return;
        }
    }

    bool done() const override { return (waiting.empty() || full()) && hard.empty(); }
    uint64_t boxes() const override { return n_boxes; }
    BranchSum not_fair() const override { return missing.words(); }
    BranchSum unfair() const override { return proved.words(); }
    const std::vector<BranchNode>& nodes() const override { return tree; }
    const BranchBox* witness() const override { return found.low.empty() ? nullptr : &found; }

    std::vector<BranchBox> draw(const double* uniform, size_t count) const override {
        std::vector<double> ends;
        double total = 0;
        for (const Waiting& box : waiting) ends.push_back(total += box.order);
        std::vector<BranchBox> boxes(total > 0 ? count : 0);
        for (size_t i = 0; i < boxes.size(); ++i) {
            const auto at = std::upper_bound(ends.begin(), ends.end(), uniform[i] * total);
            const auto index = std::min(size_t(at - ends.begin()), waiting.size() - 1);
            boxes[i] = box_of(waiting[index].node);
        }
        return boxes;
    }

    std::vector<BranchHard> take_hard() override {
        std::vector<BranchHard> taken(hard.size());
        for (size_t i = 0; i < hard.size(); ++i) taken[i] = {hard[i].node, box_of(hard[i].node)};
        return taken;
    }

    void settle(int32_t node, BranchShares shares) override {
        const auto at = std::find_if(hard.begin(), hard.end(),
                                     [&](const Pending& each) { return each.node == node; });
        if (at == hard.end()) return;
        count({at->mass, {0, 0}}, -1);
        count({at->mass, shares}, 1);
        hard.erase(at);
    }

    BranchShares examine(const BranchBox& box, bool each, int bins) override {
        return analyze(box, each, bins);
    }

  private:
    struct Waiting {
        double order, mass;  // order: the undecided share
        BranchShares shares;
        int32_t node;
        int16_t axis;
        bool apart;

        bool operator<(const Waiting& other) const { return order < other.order; }
    };
    struct Pending {
        int32_t node;
        double mass;
    };
    struct Counted {
        double mass;
        BranchShares shares;
    };

    const BranchSpec& spec;  // of the binding, which destroys the search first
    BranchOptions options;
    BranchBounds bounds;
    BranchCounter counter;
    BranchBox root, found;
    std::vector<BranchNode> tree;
    std::vector<Waiting> waiting;  // a heap
    std::vector<Pending> hard;
    BranchFixed missing, proved;
    std::vector<uint8_t> read;  // neurons of the first layer that read sensitive values
    uint64_t n_boxes = 0;
    bool apart = false;  // combinations differ by more than the gap of the last box's bounds
    BranchForms forms;
    std::vector<BranchForms> by_value;
    std::vector<std::vector<double>> hull_low, hull_high;
    std::vector<double> weights, scores, values;

    bool full() const { return tree.size() >= branch_most_nodes; }

    uint8_t code_after(double undecided, bool promising) const {
        const double wanted = options.usual_bins / std::max(undecided, 1e-3);
        int bins = options.least_bins;
        while (bins < options.most_bins && double(1 << bins) < wanted) ++bins;
        const bool each = (promising || undecided < options.joint_above) && spec.combinations > 1;
        return uint8_t(bins - options.least_bins + (each ? branch_each : 0));
    }

    // Masses are products of one quotient per axis, so their relative error is below this.
    double mass_error() const { return double(2 * spec.axes.size() + 8) * 0x1p-52; }

    void count(const Counted& leaf, int sign) {
        const double more = 1 + mass_error(), rest = 1 - leaf.shares.fair;
        const double not_fair = std::min(1.0, leaf.mass * more * rest);
        const double unfair = leaf.mass / more / more * leaf.shares.unfair;
        if (sign > 0) {
            missing.add(not_fair, true);
            proved.add(unfair, false);
        } else {
            missing.remove(not_fair, true);
            proved.remove(unfair, false);
        }
    }

    double mass_of(const BranchBox& box) const {
        double mass = 1;
        for (size_t a = 0; a < spec.axes.size(); ++a) {
            const BranchAxis& axis = spec.axes[a];
            if (axis.kind != BranchAxis::real)
                mass *= double(axis.ends[size_t(box.high[a]) + 1] - axis.ends[size_t(box.low[a])]) /
                        double(axis.ends.back());
            else if (axis.low < axis.high)
                mass *= (box.high[a] - box.low[a]) / (axis.high - axis.low);
        }
        return mass;
    }

    // Apply the cut of a node; `lower` selects the half. Values at the ends that nobody has are
    // left out, so a half may be empty: then its first value is larger than its last.
    void take_half(BranchBox& box, size_t a, bool lower) const {
        const BranchAxis& axis = spec.axes[a];
        double middle = box.low[a] + (box.high[a] - box.low[a]) / 2;
        if (axis.kind == BranchAxis::real) {
            (lower ? box.high[a] : box.low[a]) = middle;
            return;
        }
        middle = std::floor(middle);
        if (lower)
            box.high[a] = double(axis.previous[size_t(middle)]);
        else
            box.low[a] = double(axis.next[size_t(middle) + 1]);
    }

    bool can_be_cut(const BranchBox& box, size_t a) const {
        if (spec.axes[a].kind != BranchAxis::real) return box.low[a] < box.high[a];
        const double middle = box.low[a] + (box.high[a] - box.low[a]) / 2;
        return box.low[a] < middle && middle < box.high[a];
    }

    BranchBox box_of(int32_t node) const {
        std::vector<int32_t> path;
        for (int32_t at = node; at > 0; at = tree[size_t(at)].parent) path.push_back(at);
        BranchBox box = root;
        for (size_t i = path.size(); i-- > 0;) {
            const BranchNode& parent = tree[size_t(tree[size_t(path[i])].parent)];
            take_half(box, size_t(parent.axis), path[i] == parent.child);
        }
        return box;
    }

    void cut() {
        std::pop_heap(waiting.begin(), waiting.end());
        const Waiting box = waiting.back();
        waiting.pop_back();
        count({box.mass, box.shares}, -1);
        const BranchBox whole = box_of(box.node);
        const auto child = int32_t(tree.size());
        tree[size_t(box.node)].axis = box.axis;
        tree[size_t(box.node)].child = child;
        tree.push_back({box.node, -1, -1, 0});
        tree.push_back({box.node, -1, -1, 0});
        const uint8_t code = code_after(box.order / box.mass, box.apart);
        for (int side = 0; side < 2; ++side) {
            BranchBox half = whole;
            take_half(half, size_t(box.axis), side == 0);
            if (half.low[size_t(box.axis)] <= half.high[size_t(box.axis)])
                add(child + side, half, code);
        }
    }

    void add(int32_t node, const BranchBox& box, uint8_t code) {
        ++n_boxes;
        const double mass = mass_of(box);
        const bool each = code & branch_each;
        const int bins = 1 << ((code & 7) + options.least_bins);
        BranchShares shares = analyze(box, each, bins);
        tree[size_t(node)].code = code;
        if (shares.unfair == 1 && found.low.empty()) found = box;
        if (shares.fair + shares.unfair >= 1) return count({mass, shares}, 1);
        int axis = -1;
        double people = 1;
        for (size_t a = 0; a < spec.axes.size(); ++a) {
            const bool real = spec.axes[a].kind == BranchAxis::real;
            people *=
                real ? (box.low[a] < box.high[a] ? INFINITY : 1) : box.high[a] - box.low[a] + 1;
            if (can_be_cut(box, a) && (axis < 0 || bounds.gains[a] > bounds.gains[size_t(axis)]))
                axis = int(a);
        }
        if (people <= options.few) {
            tree[size_t(node)].code = branch_listed;
            if (enumerate(box, shares)) return count({mass, shares}, 1);
            hard.push_back({node, mass});
            return count({mass, {0, 0}}, 1);
        }
        count({mass, shares}, 1);
        if (axis < 0) return;
        const double undecided = 1 - shares.fair - shares.unfair;
        waiting.push_back({undecided * mass, mass, shares, node, int16_t(axis), apart});
        std::push_heap(waiting.begin(), waiting.end());
    }

    // Return whether the score may depend on sensitive values: along weights that are not zero,
    // through neurons that are not constant in the box.
    bool depends(bool each) const {
        std::vector<uint8_t> reached = read, next;
        for (size_t k = 0; k < spec.layers.size(); ++k) {
            const BranchLayer& layer = spec.layers[k];
            const auto& low = each ? hull_low[k] : bounds.relaxed[k].low;
            const auto& high = each ? hull_high[k] : bounds.relaxed[k].high;
            for (size_t j = 0; j < layer.inputs; ++j)
                reached[j] =
                    reached[j] && !branch_constant(spec.activations[k], j, low[j], high[j]);
            next.assign(layer.outputs, 0);
            for (size_t r = 0; r < layer.outputs; ++r)
                for (size_t j = 0; j < layer.inputs && !next[r]; ++j)
                    next[r] = reached[j] && layer.weight[r * layer.inputs + j] != 0;
            reached.swap(next);
        }
        return std::find(reached.begin(), reached.end(), 1) != reached.end();
    }

    BranchShares analyze(const BranchBox& box, bool each, int bins) {
        return each && spec.combinations > 1 ? analyze_each(box, bins) : analyze_joint(box, bins);
    }

    BranchShares analyze_joint(const BranchBox& box, int bins) {
        bounds.set_box(box, true);
        bounds.bound(nullptr, forms);
        apart = false;
        if (forms.low > 0 || forms.high < 0 || !depends(false)) return {1, 0};
        double fair = 0;
        const BranchPart& sensitive = bounds.parts.back();
        const auto low = bounds.range(forms.below.data(), sensitive);
        const auto high = bounds.range(forms.above.data(), sensitive);
        const double gap = at_middle(forms.above) + forms.above_constant - at_middle(forms.below) -
                           forms.below_constant +
                           (high.first + high.second - low.first - low.second) / 2;
        apart = (low.second - low.first + high.second - high.first) / 2 > gap;
        if (forms.high > 0)
            fair += counter.share_between(bounds, box, forms.below.data(), 1,
                                          forms.below_constant + low.first, -INFINITY, bins);
        if (forms.low < 0)
            fair += counter.share_between(bounds, box, forms.above.data(), -1,
                                          -(forms.above_constant + high.second), -INFINITY, bins);
        return {std::min(fair, 1 - branch_rounded), 0};
    }

    // The same with separate bounds for each combination of sensitive values.
    BranchShares analyze_each(const BranchBox& box, int bins) {
        const size_t n = spec.combinations;
        bounds.set_box(box, false);
        by_value.resize(n);
        size_t above = 0, below = 0;
        for (size_t v = 0; v < n; ++v) {
            bounds.bound(&spec.combination_rows[v * spec.neurons()], by_value[v]);
            above += by_value[v].low > 0;
            below += by_value[v].high < 0;
            for (size_t k = 0; k < spec.layers.size(); ++k) {
                const auto &low = bounds.relaxed[k].low, &high = bounds.relaxed[k].high;
                if (v == 0) {
                    hull_low[k] = low;
                    hull_high[k] = high;
                    continue;
                }
                for (size_t j = 0; j < low.size(); ++j) {
                    hull_low[k][j] = std::min(hull_low[k][j], low[j]);
                    hull_high[k][j] = std::max(hull_high[k][j], high[j]);
                }
            }
        }
        if (above == n || below == n) return {1, 0};
        if (above && below) return {0, 1};
        if (!depends(true)) return {1, 0};
        double fair = 0;
        if (!below) fair += one_side(box, 1, bins);
        if (!above) fair += one_side(box, -1, bins);
        fair = std::min(fair, 1 - branch_rounded);
        return {fair, std::min(two_sides(box, bins), 1 - fair)};
    }

    double at_middle(const std::vector<double>& form) const {
        double total = 0;
        for (size_t p = 0; p < bounds.shared_parts(); ++p) {
            const auto ends = bounds.range(form.data(), bounds.parts[p]);
            total += (ends.first + ends.second) / 2;
        }
        return total;
    }

    // The largest value of a · x − b · x over the box.
    double largest(const std::vector<double>& a, const std::vector<double>& b) {
        weights.resize(a.size());
        for (size_t f = 0; f < a.size(); ++f) weights[f] = a[f] - b[f];
        double total = 0;
        for (size_t p = 0; p < bounds.shared_parts(); ++p)
            total += bounds.range(weights.data(), bounds.parts[p]).second;
        return total;
    }

    // Where all combinations are above the threshold (sign 1) or below it (−1): the lowest form in
    // the middle, lowered by the most that another one is below it, is below all of them.
    double one_side(const BranchBox& box, double sign, int bins) {
        const auto form = [&](size_t v) -> const std::vector<double>& {
            return sign > 0 ? by_value[v].below : by_value[v].above;
        };
        const auto constant = [&](size_t v) {
            return sign > 0 ? by_value[v].below_constant : -by_value[v].above_constant;
        };
        size_t lowest = 0;
        double least = INFINITY;
        for (size_t v = 0; v < by_value.size(); ++v) {
            const double at = sign * at_middle(form(v)) + constant(v);
            if (at < least) {
                least = at;
                lowest = v;
            }
        }
        double drop = 0;
        for (size_t v = 0; v < by_value.size(); ++v) {
            if (v == lowest) continue;
            const double gap =
                sign > 0 ? largest(form(lowest), form(v)) : largest(form(v), form(lowest));
            drop = std::max(drop, gap + constant(lowest) - constant(v));
        }
        const double error = spec.errors.back()[0];
        return counter.share_between(bounds, box, form(lowest).data(), sign,
                                     constant(lowest) - drop - error, -INFINITY, bins);
    }

    // Where two combinations are on different sides.
    double two_sides(const BranchBox& box, int bins) {
        size_t best = 0, worst = 0;
        double most = -INFINITY, least = INFINITY;
        for (size_t v = 0; v < by_value.size(); ++v) {
            const double high = at_middle(by_value[v].below) + by_value[v].below_constant;
            const double low = at_middle(by_value[v].above) + by_value[v].above_constant;
            if (high > most) {
                most = high;
                best = v;
            }
            if (low < least) {
                least = low;
                worst = v;
            }
        }
        const double until = largest(by_value[worst].above, by_value[best].below) +
                             by_value[worst].above_constant - by_value[best].below_constant +
                             spec.errors.back()[0];
        apart = until < 0;
        if (!apart) return 0;
        return counter.share_between(bounds, box, by_value[best].below.data(), 1,
                                     by_value[best].below_constant, until, bins);
    }

    // Decide the people of a small box by their scores; false if somebody is too near to the
    // threshold.
    bool enumerate(const BranchBox& box, BranchShares& shares) {
        BranchBox person = box;
        double fair = 0, unfair = 0;
        bool all_fair = true, all_unfair = true;
        while (true) {
            double mass = 1;
            for (size_t a = 0; a < spec.axes.size(); ++a)
                if (spec.axes[a].kind != BranchAxis::real) {
                    const auto v = size_t(person.low[a]);
                    mass *= double(spec.axes[a].ends[v + 1] - spec.axes[a].ends[v]);
                }
            if (mass > 0) {
                person.high = person.low;
                const int side = decide(person);
                if (!side) return false;
                if (side > 0) {
                    fair += mass;
                    all_unfair = false;
                } else {
                    unfair += mass;
                    all_fair = false;
                    if (found.low.empty()) found = person;
                }
            }
            size_t a = 0;
            for (; a < spec.axes.size(); ++a) {
                if (spec.axes[a].kind == BranchAxis::real) continue;
                if (person.low[a] < box.high[a]) {
                    ++person.low[a];
                    break;
                }
                person.low[a] = box.low[a];
            }
            if (a == spec.axes.size()) break;
        }
        if (all_fair || all_unfair) {
            shares = {double(all_fair), double(!all_fair)};
            return true;
        }
        const double less = (1 - branch_rounded) / (fair + unfair);
        shares = {fair * less, unfair * less};
        return true;
    }

    // Return 1 if all counterparts of a person are on one side, −1 if not, 0 if it is not known.
    int decide(const BranchBox& person) {
        bounds.set_box(person, false);
        bool above = false, below = false;
        for (size_t v = 0; v < spec.combinations; ++v) {
            const double score = bounds.score(&spec.combination_rows[v * spec.neurons()]);
            if (!(std::fabs(score) > spec.errors.back()[0])) return 0;
            (score > 0 ? above : below) = true;
        }
        return above && below ? -1 : 1;
    }
};

}  // namespace FETA_ISA
}  // namespace feta

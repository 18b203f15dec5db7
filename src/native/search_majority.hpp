// Majority: a tally that ends when one class has more than half, and counts single counterparts of
// large nodes by linear forms.
#pragma once
#include "search_expand.hpp"

namespace feta {
namespace FETA_ISA {

// Nodes with at most this many undecided counterparts are scored, not split: a leader seldom needs
// their votes (measured).
constexpr uint64_t listed_points = 8;

// The leader is reconsidered when this many nodes are bounded, and whenever that doubled.
constexpr uint64_t min_nodes_to_switch = 1024;

// The likely winner is estimated from this many counterparts.
constexpr int sampled_points = max_points;

inline bool Search::counts_by_forms() const {
    return spec.rule.kind == RuleKind::threshold && real_axis < 0 && zonotope.single_output() &&
           !net32.layers.empty() && total >= spec.forms_from;
}

// Count only votes for the likely winner, the leader: it needs more than half. Nodes that promise
// most of them come first. If the leader seems to get less than half, the other class leads.
inline void Search::tally_majority(Outcome& out, const Limits& limits) {
    Mode asked;
    asked.majority_only = true;
    start(out, asked);
    if (decide_root(out) != undecided) return;
    forms.start(roots.center(person), roots.box(person));
    waiting.clear();
    frontier_votes.clear();
    const int sampled_above = count_sample_above(out);
    leader = (2 * sampled_above >= sampled_points) == spec.rule.above;
    promised = 0;
    record_votes(0, {leader, 0, double(total), 0.5});
    const size_t stride = size_t(axes);
    uint64_t next_switch = min_nodes_to_switch;
    while (!lead_is_final(out.counts, total)) {
        if (out_of_budget(out, limits)) return;
        const uint64_t n_waiting = waiting.size() / stride,
                       reachable = out.counts[size_t(leader)] + n_waiting;
        if (out.bounded_nodes >= next_switch && !frontier.empty()) {
            next_switch = 2 * out.bounded_nodes;
            if (double(reachable) + promised < double(total) / 2) switch_leader();
        }
        const bool suffice = 2 * reachable > total;
        if (n_waiting >= max_points || (n_waiting > 0 && (frontier.empty() || suffice)))
            score_waiting(out);
        else if (!frontier.empty())
            expand_by_forms(out, limits);
        else
            return;
    }
}

inline void Search::switch_leader() {
    leader = !leader;
    promised = 0;
    frontier.assign_keys([&](size_t slot) {
        FrontierVotes& votes = frontier_votes[slot];
        votes.share = 1 - votes.share;
        promised += votes.rest * votes.share;
        return votes.rest * votes.share;
    });
}

// Count the scores above the threshold among counterparts that are spread over the lattice.
inline int Search::count_sample_above(Outcome& out) {
    points32.clear();
    for (int p = 0; p < sampled_points; ++p) {
        const uint64_t fraction = uint64_t(p) * 0x9e3779b97f4a7c15u;  // of 2^64: the golden ratio
        set_coordinates(uint64_t((static_cast<unsigned __int128>(fraction) * total) >> 64));
        points32.add_listed(roots.center(person), coordinates.data());
    }
    points32.run();
    out.scored_points += sampled_points;
    int above = 0;
    for (int p = 0; p < sampled_points; ++p) above += points32.scores(0)[p] > spec.rule.value;
    return above;
}

inline void Search::record_votes(size_t slot, const FrontierVotes& votes) {
    if (slot >= frontier_votes.size()) frontier_votes.resize(slot + 1);
    frontier_votes[slot] = votes;
    promised += votes.rest * votes.share;
}

inline void Search::expand_by_forms(Outcome& out, const Limits& limits) {
    const FrontierVotes& known = frontier_votes[frontier.first_slot()];
    out.counts[size_t(known.of)] -= known.votes;
    promised -= known.rest * known.share;
    pop_first();
    if (limits.nodes && out.bounded_nodes >= limits.nodes) return enumerate(out, limits);
    const int n_children = split();
    out.bounded_nodes += uint64_t(n_children);
    zonotope.bound_nodes<true>(roots.center(person), roots.box(person), children.data(),
                               n_children);
    int n_undecided = 0, undecided_lanes[lanes];
    for (int l = 0; l < n_children; ++l)
        if (!count_node(out, l)) undecided_lanes[n_undecided++] = l;
    if (n_undecided == 0 || lead_is_final(out.counts, total)) return;
    const bool leader_above = leader == int(spec.rule.above);
    const double margin = (roots.source_rounding(person)[0] + source_error) * sum64 +
                          difference64 * std::abs(spec.rule.value);
    forms.take(zonotope, leader_above ? -1.0f : 1.0f, spec.rule.value, margin);
    for (int k = 0; k < n_undecided; ++k) {
        const int lane = undecided_lanes[k];
        const int32_t* child = &children[size_t(lane) * axes];
        const uint64_t count = count_of(child),
                       votes = count <= Forms::most_counted ? forms.count(lane, child) : 0,
                       rest = count - votes;
        out.counts[size_t(leader)] += votes;
        if (rest == 0) continue;
        if (rest <= listed_points && count <= Forms::most_counted) {
            forms.list(child, waiting);
            continue;
        }
        const NodeScores<float> scores = node(lane);
        const double distance = scores.value(0) - spec.rule.value,
                     ratio = (leader_above ? distance : -distance) / scores.radius(0),
                     share = ratio == ratio ? std::clamp((1 + ratio) / 2, 0.0, 1.0) : 0.0;
        record_votes(frontier.push(child, double(rest) * share),
                     {leader, votes, double(rest), share});
    }
}

// Score the last waiting counterparts.
inline void Search::score_waiting(Outcome& out) {
    const size_t stride = size_t(axes), n_waiting = waiting.size() / stride,
                 count = std::min<size_t>(n_waiting, max_points);
    points32.clear();
    const int32_t* from = waiting.data() + (n_waiting - count) * stride;
    for (size_t p = 0; p < count; ++p) points32.add_listed(roots.center(person), from + p * stride);
    points32.run();
    decide_points(out);
    waiting.resize(waiting.size() - count * stride);
}

}  // namespace FETA_ISA
}  // namespace feta

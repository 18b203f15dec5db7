// The share of a box in which a form is positive, rounded down: docs/explanation/rounding.md,
// lemma 26. Shares are float32, in which all sums are of numbers that are not negative.
#pragma once
#include "branch_bounds.hpp"

namespace feta {
namespace FETA_ISA {

inline constexpr double branch_rounded = 0x1p-48;  // `ROUNDED` in counting.py
inline constexpr double branch_unit32 = 0x1p-23;   // twice the unit of float32
inline constexpr double branch_underflow32 = 1e-30;
inline constexpr int branch_real_parts = 256;
inline constexpr double branch_short_line = 12;  // values of a line that are added one by one

class BranchCounter {
  public:
    // A lower bound of the share of people with 0 < form and form + until < 0, where the form is
    // `constant` plus sign · weights over the shared parts of the box.
    double share_between(const BranchBounds& bounds, const BranchBox& box, const double* weights,
                         double sign, double constant, double until, int bins) {
        const bool band = until > -INFINITY;
        terms.clear();
        values.clear();
        double size = std::fabs(constant), base = constant, span = 0;
        for (size_t p = 0; p < bounds.shared_parts(); ++p) {
            add_term(bounds, box, bounds.parts[p], weights, sign);
            size += std::fabs(terms.back().least) + terms.back().width;
            base += terms.back().least;
            span += terms.back().width;
        }
        const double slack = branch_rounded * double(terms.size() + 2) * size;
        base -= slack;
        if (base > 0 && !band) return 1;
        if (base + span <= 0) return 0;
        terms.erase(std::remove_if(terms.begin(), terms.end(),
                                   [](const Term& t) { return !(t.width > 0); }),
                    terms.end());
        if (terms.empty()) return base > 0 && base + until + 2 * slack < 0;
        std::sort(terms.begin(), terms.end(),
                  [](const Term& a, const Term& b) { return a.width < b.width; });
        Term& last = terms.back();
        double rest = 0, moved = 0;
        for (size_t i = 0; i + 1 < terms.size(); ++i) {
            rest += terms[i].width;
            if (terms[i].kind == Term::real) moved += terms[i].width / branch_real_parts;
        }
        const double step = rest / (bins - 1);
        if (shares.size() < size_t(2 * bins + 64))
            for (auto* each : {&shares, &other, &sum}) each->resize(size_t(2 * bins + 64));
        shares[0] = 1;
        length = 1;
        roundings = 4;
        lifts = 0;
        for (size_t i = 0; i + 1 < terms.size(); ++i) add(terms[i], 1 / step);
        moved += step * double(terms.size() - 1 + lifts);
        return closed(last, base, step, until, moved + 4 * slack, band);
    }

  private:
    struct Term {
        enum Kind { line, real, listed } kind;
        double least, width, total;  // total: values of a line, or the sum of weights
        size_t begin, end;           // of listed values
    };
    struct Value {
        double at;
        int64_t weight;
    };

    std::vector<Term> terms;
    std::vector<Value> values;
    std::vector<float> shares, other, sum;
    std::vector<std::pair<size_t, float>> taps;
    size_t length = 1, roundings = 0, lifts = 0;

    void add_term(const BranchBounds& bounds, const BranchBox& box, const BranchPart& part,
                  const double* weights, double sign) {
        const BranchAxis& axis = bounds.spec.axes[part.axis];
        const double* w = weights + part.begin;
        if (part.kind == BranchAxis::real || (part.kind == BranchAxis::line && axis.uniform)) {
            const double x = sign * w[0] * part.low, y = sign * w[0] * part.high;
            const double width = std::fabs(w[0]) * (part.high - part.low);
            terms.push_back({part.kind == BranchAxis::real ? Term::real : Term::line,
                             std::min(x, y), width, part.high - part.low + 1, 0, 0});
            return;
        }
        const size_t begin = values.size();
        const auto low = int32_t(box.low[part.axis]), high = int32_t(box.high[part.axis]);
        int64_t total = 0;
        double least = INFINITY;
        for (int32_t v = low; v <= high; v = axis.next[size_t(v) + 1]) {
            const int64_t weight = axis.ends[size_t(v) + 1] - axis.ends[size_t(v)];
            if (!weight) continue;
            const double at = part.kind == BranchAxis::table
                                  ? sign * w[v - low]
                                  : sign * w[0] * (axis.start + double(v));
            values.push_back({at, weight});
            least = std::min(least, at);
            total += weight;
        }
        double width = 0;
        for (size_t i = begin; i < values.size(); ++i) {
            values[i].at -= least;
            width = std::max(width, values[i].at);
        }
        terms.push_back({Term::listed, least, width, double(total), begin, values.size()});
    }

    static size_t shift(double value, double inverse) {
        return size_t(value * inverse * (1 - branch_rounded));
    }

    void add(const Term& term, double inverse) {
        if (term.kind == Term::line && term.total >= branch_short_line &&
            double(shift(term.width, inverse)) > 24)
            return add_line(term, inverse);
        taps.clear();
        const auto tap = [&](double value, double share) {
            taps.emplace_back(shift(value, inverse), float(share));
        };
        if (term.kind == Term::real) {
            for (int k = 0; k < branch_real_parts; ++k)
                tap(term.width * k / branch_real_parts, 1.0 / branch_real_parts);
        } else if (term.kind == Term::line) {
            const double gap = term.width / (term.total - 1);
            size_t at = 0;  // values with equal shifts are counted together
            double k = 0;
            while (k < term.total) {
                at = shift(gap * k, inverse);
                double end = std::min(
                    term.total, std::max(k + 1, std::floor(double(at + 1) / (gap * inverse))));
                while (end < term.total && shift(gap * end, inverse) == at) ++end;
                while (end > k + 1 && shift(gap * (end - 1), inverse) > at) --end;
                taps.emplace_back(at, float((end - k) / term.total));
                k = end;
            }
        } else {
            for (size_t i = term.begin; i < term.end; ++i)
                tap(values[i].at, double(values[i].weight) / term.total);
            std::sort(taps.begin(), taps.end());
        }
        size_t used = 0;
        for (size_t i = 1; i < taps.size(); ++i) {
            if (taps[i].first == taps[used].first)
                taps[used].second += taps[i].second;
            else
                taps[++used] = taps[i];
        }
        roundings += 3 * taps.size() + 4;
        taps.resize(used + 1);
        const size_t reach = length + taps.back().first;
        std::fill(other.begin(), other.begin() + long(reach), 0.0f);
        for (const auto& [at, share] : taps) add_to(&other[at], shares.data(), share);
        shares.swap(other);
        length = reach;
    }

    void add_to(float* __restrict to, const float* __restrict from, float factor) const {
        for (size_t i = 0; i < length; ++i) to[i] += from[i] * factor;
    }

    // All values of a line by doubling: the sum of 2m shifts is that of m shifts, and the same
    // shifted by m values.
    void add_line(const Term& term, double inverse) {
        const auto count = uint64_t(term.total);
        const double gap = term.width / (term.total - 1);
        int bit = 63;
        while (!(count >> bit)) --bit;
        std::copy(shares.begin(), shares.begin() + long(length), other.begin());
        size_t current = length;
        uint64_t m = 1;
        for (int b = bit - 1; b >= 0; --b) {
            const size_t by = shift(gap * double(m), inverse), reach = current + by;
            std::copy(other.begin(), other.begin() + long(current), sum.begin());
            std::fill(sum.begin() + long(current), sum.begin() + long(reach), 0.0f);
            float* __restrict to = &sum[by];
            const float* __restrict from = other.data();
            for (size_t i = 0; i < current; ++i) to[i] += from[i];
            other.swap(sum);
            current = reach;
            m *= 2;
            ++roundings;
            ++lifts;
            if ((count >> b) & 1) {
                const size_t top = shift(gap * double(m), inverse);
                if (length + top > current) {
                    std::fill(other.begin() + long(current), other.begin() + long(length + top),
                              0.0f);
                    current = length + top;
                }
                float* __restrict more = &other[top];
                const float* __restrict each = shares.data();
                for (size_t i = 0; i < length; ++i) more[i] += each[i];
                ++m;
                ++roundings;
                ++lifts;
            }
        }
        const auto part = float(1 / term.total);
        for (size_t i = 0; i < current; ++i) shares[i] = other[i] * part;
        roundings += 3;
        length = current;
    }

    double closed(const Term& last, double base, double step, double until, double moved,
                  bool band) {
        double held = 0, missed = 0;
        const double more = 1 + branch_rounded, end = until + moved;
        const auto raised = [](double t) { return t + branch_rounded * std::fabs(t); };
        const auto lowered = [](double t) { return t - branch_rounded * std::fabs(t); };
        if (last.kind == Term::line) {
            const double n = last.total, inverse = (n - 1) / last.width;
            const auto up_to = [&](double t) {  // values ≤ t, rounded up
                const double k = std::floor(t * inverse * (t > 0 ? more : 1 / more)) + 1;
                return std::min(n, std::max(k, 0.0));
            };
            for (size_t s = 0; s < length; ++s) {
                const double t = raised(-base - step * double(s));
                double out = up_to(t);
                if (band) {
                    const double u = lowered(t - end - 2 * branch_rounded * std::fabs(t));
                    double below = std::ceil(u * inverse * (u > 0 ? 1 / more : more));
                    below = std::min(n, std::max(below, 0.0));  // values < u, rounded down
                    out = n - std::max(0.0, below - out);
                }
                missed += double(shares[s]) * out;
                held += double(shares[s]) * (n - out);
            }
            held /= n;
            missed /= n;
        } else if (last.kind == Term::real) {
            for (size_t s = 0; s < length; ++s) {
                const double t = raised(-base - step * double(s));
                double out = t < 0 ? 0 : std::min(1.0, t / last.width * more + branch_rounded);
                if (band) {
                    const double u = lowered(t - end - 2 * branch_rounded * std::fabs(t));
                    const double below =
                        u <= 0 ? 0 : std::min(1.0, u / last.width / more - branch_rounded);
                    out = 1 - std::max(0.0, below - out);
                }
                missed += double(shares[s]) * out;
                held += double(shares[s]) * (1 - out);
            }
        } else {
            std::sort(values.begin() + long(last.begin), values.begin() + long(last.end),
                      [](const Value& a, const Value& b) { return a.at < b.at; });
            // Limits fall with s, so both ends only move down.
            size_t i = last.end, k = last.end;
            int64_t out = int64_t(last.total), below = out;  // weights of values ≤ t, and < u
            for (size_t s = 0; s < length; ++s) {
                const double t = raised(-base - step * double(s));
                while (i > last.begin && values[i - 1].at > t) out -= values[--i].weight;
                int64_t outside = out;
                if (band) {
                    const double u = lowered(t - end - 2 * branch_rounded * std::fabs(t));
                    while (k > last.begin && values[k - 1].at >= u) below -= values[--k].weight;
                    outside = int64_t(last.total) - std::max(int64_t(0), below - out);
                }
                missed += double(shares[s]) * double(outside);
                held += double(shares[s]) * (last.total - double(outside));
            }
            held /= last.total;
            missed /= last.total;
        }
        const double error = double(roundings) * branch_unit32 + double(length) * 0x1p-52;
        held = held * (1 - error) - branch_rounded;
        if (band) return std::clamp(held - branch_underflow32, 0.0, 1.0);
        return std::clamp(
            std::max(held, 1 - missed * (1 + error) - branch_underflow32 - branch_rounded), 0.0,
            1.0);
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Linear bounds of a score over a box of people; the weights of all rows are pulled back together.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "branch.hpp"

namespace feta {
namespace FETA_ISA {

// Relative error of a difference of two or three numbers, as `DIFFERENCE` in rounding.py.
inline constexpr double branch_difference = 0x1p-50;
inline constexpr double branch_tiny = 0x1p-1021;

// An activation over the box: bounds of its inputs and its values, and its lines.
struct BranchRelaxed {
    std::vector<double> low, high, least, most;
    std::vector<double> below_slope, below, above_slope, above;

    void resize(size_t n) {
        for (auto* each : {&low, &high, &least, &most, &below_slope, &below, &above_slope, &above})
            each->resize(n);
    }
};

// out = rows · weight; rows of weights that are zero in all of four rows are skipped.
inline void branch_multiply(const double* rows, size_t n_rows, size_t inner, const double* weight,
                            size_t n, double* out) {
    std::fill(out, out + n_rows * n, 0.0);
    size_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        const double *a = rows + r * inner, *b = a + inner, *c = b + inner, *d = c + inner;
        double* __restrict p = out + r * n;
        double* __restrict q = p + n;
        double* __restrict s = q + n;
        double* __restrict t = s + n;
        for (size_t j = 0; j < inner; ++j) {
            const double x = a[j], y = b[j], z = c[j], u = d[j];
            if (x == 0 && y == 0 && z == 0 && u == 0) continue;
            const double* __restrict w = weight + j * n;
            for (size_t i = 0; i < n; ++i) {
                p[i] += x * w[i];
                q[i] += y * w[i];
                s[i] += z * w[i];
                t[i] += u * w[i];
            }
        }
    }
    for (; r < n_rows; ++r) {
        double* __restrict p = out + r * n;
        for (size_t j = 0; j < inner; ++j) {
            const double x = rows[r * inner + j];
            if (x == 0) continue;
            const double* __restrict w = weight + j * n;
            for (size_t i = 0; i < n; ++i) p[i] += x * w[i];
        }
    }
}

inline void branch_relax_relu(BranchRelaxed& at, size_t j) {
    const double low = at.low[j], high = at.high[j];
    at.least[j] = std::max(low, 0.0);
    at.most[j] = std::max(high, 0.0);
    at.below[j] = at.above[j] = 0;
    if (low >= 0) {
        at.below_slope[j] = at.above_slope[j] = 1;
    } else if (high <= 0) {
        at.below_slope[j] = at.above_slope[j] = 0;
    } else {
        const double slope = std::min(1.0, high / (high - low));
        at.above_slope[j] = slope;
        at.above[j] = std::max(-slope * low, high - slope * high) +
                      branch_difference * (slope * (high - low) + high) + branch_tiny;
        at.below_slope[j] = high > -low ? 1 : 0;
    }
}

// The same for any piecewise-linear function: a line of any slope is above it if it is above it at
// the ends and at the breaks between them.
inline void branch_relax(const BranchActivation& f, BranchRelaxed& at, size_t j) {
    const size_t column = f.width == 1 ? 0 : j, width = f.width;
    const double low = at.low[j], high = at.high[j];
    const double *breaks = f.breaks.data() + column, *slopes = f.slopes.data() + column,
                 *starts = f.intercepts.data() + column;
    size_t first = 0, last = 0;
    for (size_t k = 0; k + 1 < f.pieces; ++k) {
        first += low >= breaks[k * width];
        last += high > breaks[k * width];
    }
    double steepest = 0, smallest = slopes[0], largest = slopes[0];
    for (size_t k = 0; k < f.pieces; ++k) {
        steepest = std::max(steepest, std::fabs(slopes[k * width]));
        smallest = std::min(smallest, slopes[k * width]);
        largest = std::max(largest, slopes[k * width]);
    }
    last = std::max(first, last);
    const auto value = [&](double z, size_t k) {
        return slopes[k * width] * z + starts[k * width];
    };
    const auto error = [&](double z, size_t k) {
        return branch_difference * (steepest * std::fabs(z) + std::fabs(starts[k * width])) +
               branch_tiny;
    };
    const double ends[2] = {value(low, first), value(high, last)};
    const size_t points = last - first + 2;
    const auto point = [&](size_t i) {
        return i == 0 ? low : i + 1 == points ? high : breaks[(first + i - 1) * width];
    };
    const auto piece = [&](size_t i) { return std::min(first + i, last); };
    at.least[j] = INFINITY;
    at.most[j] = -INFINITY;
    for (size_t i = 0; i < points; ++i) {
        const double z = point(i), y = value(z, piece(i)), e = error(z, piece(i));
        at.least[j] = std::min(at.least[j], y - e);
        at.most[j] = std::max(at.most[j], y + e);
    }
    if (first == last) {
        at.below_slope[j] = at.above_slope[j] = slopes[first * width];
        at.below[j] = at.above[j] = starts[first * width];
        return;
    }
    const double chord =
        high > low ? std::clamp((ends[1] - ends[0]) / (high - low), smallest, largest) : smallest;
    const double middle = low + (high - low) / 2;
    double best_below = -INFINITY, best_above = INFINITY;
    for (size_t k = first; k <= last + 1; ++k) {
        const double slope = k <= last ? slopes[k * width] : chord;
        double below = INFINITY, above = -INFINITY;
        for (size_t i = 0; i < points; ++i) {
            const double z = point(i), offset = value(z, piece(i)) - slope * z;
            const double e = error(z, piece(i)) + branch_difference * std::fabs(slope * z);
            below = std::min(below, offset - e);
            above = std::max(above, offset + e);
        }
        if (slope * middle + below > best_below) {
            best_below = slope * middle + below;
            at.below_slope[j] = slope;
            at.below[j] = below;
        }
        if (slope * middle + above < best_above) {
            best_above = slope * middle + above;
            at.above_slope[j] = slope;
            at.above[j] = above;
        }
    }
}

inline bool branch_constant(const BranchActivation& f, size_t j, double low, double high) {
    if (f.relu) return high <= 0;
    const size_t column = f.width == 1 ? 0 : j;
    double below = -INFINITY;
    for (size_t k = 0; k < f.pieces; ++k) {
        const double above = k + 1 < f.pieces ? f.breaks[k * f.width + column] : INFINITY;
        if (f.slopes[k * f.width + column] != 0 && high > below && low < above) return false;
        below = above;
    }
    return true;
}

// The height of a relaxation: at each break, the chord's distance times the bend. A heuristic.
inline double branch_gap(const BranchActivation& f, size_t j, double low, double high) {
    const size_t column = f.width == 1 ? 0 : j;
    double total = 0;
    for (size_t k = 0; k + 1 < f.pieces; ++k) {
        const double at = f.breaks[k * f.width + column];
        if (low < at && at < high)
            total +=
                std::fabs(f.slopes[(k + 1) * f.width + column] - f.slopes[k * f.width + column]) *
                (at - low) * (high - at) / (high - low);
    }
    return total;
}

// An axis of the current box with more than one value: its columns among the features.
struct BranchPart {
    size_t axis, begin, end;
    BranchAxis::Kind kind;
    double low, high;  // numbers of a line, values of a table
};

// Two forms over the features of the box.
struct BranchForms {
    std::vector<double> below, above;  // one weight per feature
    double below_constant = 0, above_constant = 0, low = 0, high = 0;
};

class BranchBounds {
  public:
    explicit BranchBounds(const BranchSpec& from) : spec(from) {
        for (const auto& layer : spec.layers) {
            relaxed.emplace_back().resize(layer.inputs);
            importance.emplace_back(layer.inputs);
            moves.emplace_back();
            widest = std::max({widest, layer.inputs, layer.outputs});
        }
        widest = std::max(widest, spec.neurons());
    }

    const BranchSpec& spec;
    std::vector<BranchPart> parts;
    size_t features = 0;
    std::vector<BranchRelaxed> relaxed;
    std::vector<double> gains;  // one per axis

    // Set the box. `joint` adds the combinations of sensitive values as features.
    void set_box(const BranchBox& box, bool joint) {
        const size_t n = spec.neurons();
        parts.clear();
        center.assign(spec.constant.begin(), spec.constant.end());
        features = 0;
        rows.clear();
        for (size_t a = 0; a < spec.axes.size(); ++a) {
            const BranchAxis& axis = spec.axes[a];
            const double low = box.low[a], high = box.high[a];
            if (axis.kind == BranchAxis::table) {
                const double* table = axis.rows.data() + size_t(low) * n;
                if (low == high) {
                    for (size_t j = 0; j < n; ++j) center[j] += table[j];
                    continue;
                }
                const size_t count = size_t(high - low) + 1;
                for (size_t v = 0; v < count; ++v) rows.push_back(table + v * n);
                parts.push_back({a, features, features + count, axis.kind, low, high});
                features += count;
            } else {
                const double first = low + axis.start, last = high + axis.start;
                if (low == high) {
                    for (size_t j = 0; j < n; ++j) center[j] += axis.rows[j] * first;
                    continue;
                }
                rows.push_back(axis.rows.data());
                parts.push_back({a, features, features + 1, axis.kind, first, last});
                ++features;
            }
        }
        joint_part = parts.size();
        if (joint) {
            const size_t count = spec.combinations;
            for (size_t v = 0; v < count; ++v) rows.push_back(&spec.combination_rows[v * n]);
            parts.push_back({spec.axes.size(), features, features + count, BranchAxis::table, 0,
                             double(count - 1)});
            features += count;
        }
        padded = (features + 3) / 4 * 4;
        first_weight.assign(n * padded, 0.0);
        for (size_t f = 0; f < features; ++f)
            for (size_t j = 0; j < n; ++j) first_weight[j * padded + f] = rows[f][j];
        spread.assign(parts.size() * n, 0.0);
        base_low.assign(n, 0.0);
        base_high.assign(n, 0.0);
        for (size_t p = 0; p < parts.size(); ++p) add_range(p);
        gains.assign(spec.axes.size(), 0.0);
    }

    size_t shared_parts() const { return joint_part; }

    // Bound the score; `combination` is added to the first layer unless all are features.
    void bound(const double* combination, BranchForms& forms) {
        const size_t n = spec.neurons();
        constant = center;
        if (combination)
            for (size_t j = 0; j < n; ++j) constant[j] += combination[j];
        for (size_t index = 0; index < spec.layers.size(); ++index) {
            if (index == 0)
                first_box();
            else
                next_box(index);
            relax(index);
        }
        last(forms);
        add_gains(forms);
    }

    // The score of the only person of the box, minus the threshold.
    double score(const double* combination) {
        const size_t n = spec.neurons();
        constant = center;
        for (size_t j = 0; j < n; ++j) constant[j] += combination[j];
        low_features.assign(constant.begin(), constant.end());
        for (size_t k = 0; k < spec.layers.size(); ++k) {
            const BranchLayer& layer = spec.layers[k];
            for (size_t j = 0; j < layer.inputs; ++j)
                low_features[j] = value(spec.activations[k], j, low_features[j]);
            scratch.assign(layer.bias.begin(), layer.bias.end());
            for (size_t r = 0; r < layer.outputs; ++r)
                for (size_t j = 0; j < layer.inputs; ++j)
                    scratch[r] += layer.weight[r * layer.inputs + j] * low_features[j];
            low_features.swap(scratch);
        }
        return low_features[0] - spec.threshold;
    }

    // The extremes of weights · features over a part.
    std::pair<double, double> range(const double* weights, const BranchPart& part) const {
        if (part.kind != BranchAxis::table) {
            const double x = weights[part.begin] * part.low, y = weights[part.begin] * part.high;
            return {std::min(x, y), std::max(x, y)};
        }
        double least = weights[part.begin], most = least;
        for (size_t f = part.begin + 1; f < part.end; ++f) {
            least = std::min(least, weights[f]);
            most = std::max(most, weights[f]);
        }
        return {least, most};
    }

  private:
    std::vector<const double*> rows;
    std::vector<double> center, constant, first_weight, spread, base_low, base_high;
    std::vector<std::vector<double>> importance, moves;  // weights in both forms; half spreads
    std::vector<double> low_rows, high_rows, scratch, low_features, high_features;
    std::vector<double> low_sum, high_sum, best_low, best_high;
    std::vector<size_t> chosen;
    size_t padded = 0, widest = 0, joint_part = 0;

    void add_range(size_t p) {
        const size_t n = spec.neurons();
        const BranchPart& part = parts[p];
        least_terms.assign(n, INFINITY);
        most_terms.assign(n, -INFINITY);
        const auto include = [&](const double* row, double factor) {
            for (size_t j = 0; j < n; ++j) {
                const double x = row[j] * factor;
                least_terms[j] = std::min(least_terms[j], x);
                most_terms[j] = std::max(most_terms[j], x);
            }
        };
        if (part.kind == BranchAxis::table) {
            for (size_t f = part.begin; f < part.end; ++f) include(rows[f], 1.0);
        } else {
            include(rows[part.begin], part.low);
            include(rows[part.begin], part.high);
        }
        for (size_t j = 0; j < n; ++j) {
            base_low[j] += least_terms[j];
            base_high[j] += most_terms[j];
            spread[p * n + j] = most_terms[j] - least_terms[j];
        }
    }
    std::vector<double> least_terms, most_terms;

    static double value(const BranchActivation& f, size_t j, double z) {
        if (f.relu) return std::max(z, 0.0);
        const size_t column = f.width == 1 ? 0 : j;
        size_t k = 0;
        while (k + 1 < f.pieces && z >= f.breaks[k * f.width + column]) ++k;
        return f.slopes[k * f.width + column] * z + f.intercepts[k * f.width + column];
    }

    void clamp(size_t index, size_t j, double low, double high) {
        const double size = spec.sizes[index][j], error = spec.errors[index][j];
        relaxed[index].low[j] = std::clamp(low - error, -size, size);
        relaxed[index].high[j] = std::clamp(high + error, -size, size);
    }

    void first_box() {
        const size_t n = spec.neurons(), shared = parts.size();
        for (size_t j = 0; j < n; ++j)
            clamp(0, j, constant[j] + base_low[j], constant[j] + base_high[j]);
        moves[0].assign(n * shared, 0.0);
        for (size_t p = 0; p < shared; ++p)
            for (size_t j = 0; j < n; ++j) moves[0][j * shared + p] = spread[p * n + j] / 2;
    }

    void relax(size_t index) {
        const BranchActivation& f = spec.activations[index];
        for (size_t j = 0; j < spec.layers[index].inputs; ++j)
            f.relu ? branch_relax_relu(relaxed[index], j) : branch_relax(f, relaxed[index], j);
    }

    bool stable(size_t index, size_t j, double low, double high) const {
        const BranchActivation& f = spec.activations[index];
        const size_t column = f.width == 1 ? 0 : j;
        for (size_t k = 0; k + 1 < f.pieces; ++k) {
            const double at = f.breaks[k * f.width + column];
            if (low < at && at < high) return false;
        }
        return true;
    }

    // Interval bounds of all neurons, then linear ones of those that may change their piece.
    void next_box(size_t index) {
        const BranchLayer& layer = spec.layers[index - 1];
        const BranchRelaxed& before = relaxed[index - 1];
        chosen.clear();
        for (size_t r = 0; r < layer.outputs; ++r) {
            const double* w = &layer.weight[r * layer.inputs];
            double low = layer.bias[r], high = low;
            for (size_t j = 0; j < layer.inputs; ++j) {
                const double x = w[j] * before.least[j], y = w[j] * before.most[j];
                low += std::min(x, y);
                high += std::max(x, y);
            }
            clamp(index, r, low, high);
            if (!stable(index, r, relaxed[index].low[r], relaxed[index].high[r]))
                chosen.push_back(r);
        }
        moves[index].assign(layer.outputs * parts.size(), 0.0);
        const size_t count = chosen.size();
        if (!count) return;
        start(count);
        for (size_t i = 0; i < count; ++i) {
            const double* w = &layer.weight[chosen[i] * layer.inputs];
            std::copy(w, w + layer.inputs, &low_rows[i * layer.inputs]);
            std::copy(w, w + layer.inputs, &high_rows[i * layer.inputs]);
            low_sum[i] = high_sum[i] = layer.bias[chosen[i]];
        }
        pull_back(index, count, false);
        for (size_t i = 0; i < count; ++i) {
            const size_t r = chosen[i];
            const double error = spec.errors[index][r];
            double &low = relaxed[index].low[r], &high = relaxed[index].high[r];
            low = std::max(low, best_low[i] - error);
            high = std::min(high, best_high[i] + error);
            for (size_t p = 0; p < parts.size(); ++p) {
                const auto x = range(&low_features[i * padded], parts[p]),
                           y = range(&high_features[i * padded], parts[p]);
                moves[index][r * parts.size() + p] = (x.second - x.first + y.second - y.first) / 4;
            }
        }
    }

    void start(size_t count) {
        for (auto* each : {&low_rows, &high_rows, &scratch}) each->resize(count * widest);
        for (auto* each : {&low_features, &high_features}) each->resize(count * padded);
        for (auto* each : {&low_sum, &high_sum}) each->resize(count);
        best_low.assign(count, -INFINITY);
        best_high.assign(count, INFINITY);
    }

    // Pull `count` rows back from the layer after `index` activations to the features.
    void pull_back(size_t index, size_t count, bool note) {
        for (size_t q = index; q-- > 0;) {
            const size_t n = spec.layers[q].inputs;
            const BranchRelaxed& at = relaxed[q];
            for (size_t i = 0; i < count; ++i) {
                double *low = &low_rows[i * n], *high = &high_rows[i * n];
                double closed_low = 0, closed_high = 0, more_low = 0, more_high = 0;
                if (note)
                    for (size_t j = 0; j < n; ++j)
                        importance[q][j] = std::fabs(low[j]) + std::fabs(high[j]);
                for (size_t j = 0; j < n; ++j) {
                    const double a = std::max(low[j], 0.0), b = std::min(low[j], 0.0);
                    const double c = std::max(high[j], 0.0), d = std::min(high[j], 0.0);
                    closed_low += a * at.least[j] + b * at.most[j];
                    closed_high += c * at.most[j] + d * at.least[j];
                    more_low += a * at.below[j] + b * at.above[j];
                    more_high += c * at.above[j] + d * at.below[j];
                    low[j] = a * at.below_slope[j] + b * at.above_slope[j];
                    high[j] = c * at.above_slope[j] + d * at.below_slope[j];
                }
                best_low[i] = std::max(best_low[i], low_sum[i] + closed_low);
                best_high[i] = std::min(best_high[i], high_sum[i] + closed_high);
                low_sum[i] += more_low;
                high_sum[i] += more_high;
                const std::vector<double>& bias = q ? spec.layers[q - 1].bias : constant;
                for (size_t j = 0; j < n; ++j) {
                    low_sum[i] += low[j] * bias[j];
                    high_sum[i] += high[j] * bias[j];
                }
            }
            if (!q) break;
            const BranchLayer& layer = spec.layers[q - 1];
            for (auto* each : {&low_rows, &high_rows}) {
                branch_multiply(each->data(), count, n, layer.weight.data(), layer.inputs,
                                scratch.data());
                each->swap(scratch);
            }
        }
        const size_t n = spec.neurons();
        branch_multiply(low_rows.data(), count, n, first_weight.data(), padded,
                        low_features.data());
        branch_multiply(high_rows.data(), count, n, first_weight.data(), padded,
                        high_features.data());
        for (size_t i = 0; i < count; ++i) {
            double low = low_sum[i], high = high_sum[i];
            for (const BranchPart& part : parts) {
                low += range(&low_features[i * padded], part).first;
                high += range(&high_features[i * padded], part).second;
            }
            best_low[i] = std::max(best_low[i], low);
            best_high[i] = std::min(best_high[i], high);
        }
    }

    void last(BranchForms& forms) {
        start(1);
        const size_t depth = spec.layers.size();
        if (depth) {
            const BranchLayer& layer = spec.layers.back();
            std::copy(layer.weight.begin(), layer.weight.end(), low_rows.begin());
            std::copy(layer.weight.begin(), layer.weight.end(), high_rows.begin());
            low_sum[0] = high_sum[0] = layer.bias[0] - spec.threshold;
        } else {
            low_rows[0] = high_rows[0] = 1;
            low_sum[0] = high_sum[0] = constant[0] - spec.threshold;
        }
        pull_back(depth, 1, true);
        const double error = spec.errors.back()[0];
        forms.below.assign(low_features.begin(), low_features.begin() + features);
        forms.above.assign(high_features.begin(), high_features.begin() + features);
        forms.below_constant = low_sum[0] - error;
        forms.above_constant = high_sum[0] + error;
        forms.low = best_low[0] - error;
        forms.high = best_high[0] + error;
    }

    // Estimate how much a cut in the middle of each axis narrows the gaps of all relaxations.
    void add_gains(const BranchForms& forms) {
        const size_t count = parts.size();
        for (size_t index = 0; index < relaxed.size(); ++index) {
            const BranchActivation& f = spec.activations[index];
            const BranchRelaxed& at = relaxed[index];
            for (size_t j = 0; j < at.low.size(); ++j) {
                const double low = at.low[j], high = at.high[j], weight = importance[index][j];
                const double gap = weight ? branch_gap(f, j, low, high) : 0;
                if (gap == 0) continue;
                for (size_t p = 0; p < joint_part; ++p) {
                    const double move = moves[index][j * count + p];
                    if (move == 0) continue;
                    const double after = branch_gap(f, j, std::min(low + move, high), high) +
                                         branch_gap(f, j, low, std::max(high - move, low));
                    gains[parts[p].axis] += weight * (gap - after / 2);
                }
            }
        }
        for (size_t p = 0; p < joint_part; ++p) {
            const auto x = range(forms.below.data(), parts[p]),
                       y = range(forms.above.data(), parts[p]);
            gains[parts[p].axis] += 0x1p-53 * (x.second - x.first + y.second - y.first);
        }
    }
};

}  // namespace FETA_ISA
}  // namespace feta

// Scores of people in float64 with the error bounds of scorer/network/error_bounds.py.
//
// Python passes every factor and constant of the bounds; here they are only multiplied and added.
// The bounds hold for any order of summation, with or without fused multiply-add.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace feta {

struct Doubles2 {
    size_t rows = 0, columns = 0;
    std::vector<double> numbers;
    const double* row(size_t index) const { return numbers.data() + index * columns; }
};

// What the bound of an affine layer adds: (Σ inputs + constant) · upward, infinite above a limit.
struct BoundTerms {
    double gamma = 0, tiny = 0, upward = 1, limit = 0;
    std::vector<double> constants;  // by output

    double finish(double error, size_t output) const {
        const double bound = (error + constants[output]) * upward;
        return bound <= limit ? bound : std::numeric_limits<double>::infinity();  // also for NaN
    }
};

// An activation, and the affine layer after it; one column per neuron.
struct BoundedStep {
    Doubles2 breaks, slopes, intercepts;  // (pieces − 1, neurons), (pieces, neurons)
    std::vector<double> factors;          // of the error of each neuron
    std::vector<double> reach, lift;      // of the rounding of an activation; empty: it is exact
    double gamma = 0, tiny = 0;           // of that rounding
    bool relu = false;
    Doubles2 weights, sizes;  // (neurons, outputs): weights, and what errors are multiplied by
    std::vector<double> bias;
    BoundTerms terms;
};

class BoundedChain {
  public:
    Doubles2 slopes, sizes;  // of the first layer: (columns, neurons)
    double floor = 0;        // added to absolute inputs
    std::vector<double> bias;
    std::vector<Doubles2> tables;  // of some columns: (values, neurons)
    BoundTerms terms;
    std::vector<BoundedStep> steps;

    size_t outputs() const { return steps.empty() ? bias.size() : steps.back().bias.size(); }

    // `indices` has the row of each table, per person.
    void scores(const double* people, const int64_t* indices, size_t count, double* scores,
                double* errors) const {
        std::vector<double> values, bounds, next, next_bounds;
        for (size_t person = 0; person < count; ++person) {
            first_layer(people + person * slopes.rows, indices + person * tables.size(), values,
                        bounds);
            for (const BoundedStep& step : steps) {
                activate(step, values, bounds);
                affine(step, values, bounds, next, next_bounds);
                values.swap(next);
                bounds.swap(next_bounds);
            }
            for (size_t output = 0; output < values.size(); ++output) {
                scores[person * values.size() + output] = values[output];
                errors[person * values.size() + output] = bounds[output];
            }
        }
    }

  private:
    void first_layer(const double* inputs, const int64_t* indices, std::vector<double>& values,
                     std::vector<double>& bounds) const {
        const size_t neurons = bias.size();
        values.assign(neurons, 0.0);
        bounds.assign(neurons, 0.0);
        for (size_t column = 0; column < slopes.rows; ++column) {
            const double input = inputs[column], size = std::abs(input) + floor;
            const double *slope = slopes.row(column), *factor = sizes.row(column);
            for (size_t neuron = 0; neuron < neurons; ++neuron) {
                values[neuron] += input * slope[neuron];
                bounds[neuron] += size * factor[neuron];
            }
        }
        for (size_t table = 0; table < tables.size(); ++table) {
            const double* row = tables[table].row(size_t(indices[table]));
            for (size_t neuron = 0; neuron < neurons; ++neuron) {
                values[neuron] += row[neuron];
                bounds[neuron] += std::abs(row[neuron]);
            }
        }
        for (size_t neuron = 0; neuron < neurons; ++neuron) {
            values[neuron] += bias[neuron];
            bounds[neuron] = terms.finish(terms.gamma * bounds[neuron], neuron);
        }
    }

    // A break belongs to the piece above it.
    static void activate(const BoundedStep& step, std::vector<double>& values,
                         std::vector<double>& bounds) {
        for (size_t neuron = 0; neuron < values.size(); ++neuron) {
            const double value = values[neuron], bound = bounds[neuron];
            bounds[neuron] = bound * step.factors[neuron];
            if (!step.reach.empty())
                bounds[neuron] += step.gamma * (step.reach[neuron] * (std::abs(value) + bound) +
                                                step.lift[neuron]) +
                                  step.tiny;
            if (step.relu) {
                values[neuron] = value < 0 ? 0.0 : value;  // NaN stays NaN
                continue;
            }
            size_t piece = 0;
            for (size_t at = 0; at < step.breaks.rows; ++at)
                if (value >= step.breaks.row(at)[neuron]) piece = at + 1;
            values[neuron] =
                step.slopes.row(piece)[neuron] * value + step.intercepts.row(piece)[neuron];
        }
    }

    static void affine(const BoundedStep& step, const std::vector<double>& inputs,
                       const std::vector<double>& errors, std::vector<double>& values,
                       std::vector<double>& bounds) {
        const size_t outputs = step.bias.size();
        values.assign(outputs, 0.0);
        bounds.assign(outputs, 0.0);
        for (size_t neuron = 0; neuron < inputs.size(); ++neuron) {
            const double input = inputs[neuron], error = errors[neuron];
            const double radius =
                error + step.terms.gamma * (std::abs(input) + 2 * error) + step.terms.tiny;
            const double *weight = step.weights.row(neuron), *size = step.sizes.row(neuron);
            for (size_t output = 0; output < outputs; ++output) {
                values[output] += input * weight[output];
                bounds[output] += radius * size[output];
            }
        }
        for (size_t output = 0; output < outputs; ++output) {
            values[output] += step.bias[output];
            bounds[output] = step.terms.finish(bounds[output], output);
        }
    }
};

}  // namespace feta

// Scores: values with error bounds, per output and per pair of outputs, for comparator and
// objectives.
#pragma once
#include "points.hpp"
#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

// Scores over one node, a lane of a zonotope. `source_rounding` bounds the rounding error of each
// score in the source's arithmetic, `source_error` the source's further error at the threshold.
template <class T> struct NodeScores {
    const Zonotope<T>& z;
    int lane;
    const double* source_rounding;
    double source_error;
    double value(int o) const {
        return z.single_output() ? (double(z.low()[lane]) + z.high()[lane]) / 2 : z.center(o)[lane];
    }
    double radius(int o) const {
        if (z.single_output())
            return (double(z.high()[lane]) - z.low()[lane]) / 2 * sum64 + source_rounding[o] +
                   source_error;
        double sum = z.box(o)[lane];
        for (int g = 0; g < z.generators(); ++g) sum += std::abs(double(z.generator(g, o)[lane]));
        return sum * sum64 + source_rounding[o] + source_error;
    }
    double radius(int first, int second) const {
        double sum = double(z.box(first)[lane]) + z.box(second)[lane];
        for (int g = 0; g < z.generators(); ++g)
            sum += std::abs(double(z.generator(g, first)[lane]) - z.generator(g, second)[lane]);
        return sum * sum64 + source_rounding[first] + source_rounding[second] + source_error;
    }
};

// Scores of one counterpart.
template <class T> struct PointScores {
    const Points<T>& points;
    int point;
    const double* kernel_errors;
    const double* source_rounding;  // null: only the kernel's errors count
    double source_error;
    double value(int o) const { return points.scores(o)[point]; }
    double error(int o) const {
        return kernel_errors[o] + (source_rounding ? source_rounding[o] : 0.0);
    }
    double radius(int o) const { return error(o) + source_error; }
    double radius(int first, int second) const {
        return error(first) + error(second) + source_error +
               difference64 * (std::abs(value(first)) + std::abs(value(second)));
    }
};

// The largest, or the smallest, of the rows of directions · outputs + offsets.
struct Objective {
    int rows = 0, outputs = 1;
    const double* directions = nullptr;  // (rows, outputs)
    const double* offsets = nullptr;     // (rows)
    bool smallest = false;

    // Return whether a higher (sign 1) or lower (−1) single output can increase the objective.
    bool increases_with(double sign) const {
        for (int r = 0; r < rows; ++r)
            if (outputs == 1 && directions[r] * sign > 0) return true;
        return false;
    }

    // Bound the error of the objective at a point, given the errors of the outputs.
    double error(const double* errors) const {
        double largest = 0;
        for (int r = 0; r < rows; ++r) {
            double sum = 0;
            for (int o = 0; o < outputs; ++o)
                sum += std::abs(directions[size_t(r) * outputs + o]) * errors[o];
            largest = std::max(largest, sum);
        }
        return largest;
    }

    // Bound the objective over a node from above.
    template <class T> double high(const Zonotope<T>& z, int lane) const {
        if (z.single_output())
            return enclose([&](const double* direction, double& center, double& magnitude,
                               double& radius) {
                       const double low = z.low()[lane], high = z.high()[lane];
                       center += direction[0] * (low + high) / 2;
                       radius += std::abs(direction[0]) * (high - low) / 2;
                       magnitude +=
                           std::abs(direction[0]) * std::max(std::abs(low), std::abs(high));
                   })
                .second;
        return enclose(
                   [&](const double* direction, double& center, double& magnitude, double& radius) {
                       for (int o = 0; o < outputs; ++o) {
                           center += direction[o] * z.center(o)[lane];
                           magnitude += std::abs(direction[o] * z.center(o)[lane]);
                           radius += std::abs(direction[o]) * z.box(o)[lane];
                       }
                       for (int g = 0; g < z.generators(); ++g) {
                           double sum = 0;
                           for (int o = 0; o < outputs; ++o) {
                               const double part = direction[o] * z.generator(g, o)[lane];
                               sum += part;
                               magnitude += std::abs(part);
                           }
                           radius += std::abs(sum);
                       }
                   })
            .second;
    }

    // Enclose the objective at a point.
    template <class T> std::pair<double, double> range(const Points<T>& points, int point,
                                                       const double* errors) const {
        return enclose(
            [&](const double* direction, double& center, double& magnitude, double& radius) {
                for (int o = 0; o < outputs; ++o) {
                    const double value = points.scores(o)[point];
                    center += direction[o] * value;
                    magnitude += std::abs(direction[o] * value);
                    radius += std::abs(direction[o]) * errors[o];
                }
            });
    }

  private:
    // `row` adds center, magnitude and radius of direction · outputs; the magnitude bounds the
    // rounding errors made here.
    template <class Row> std::pair<double, double> enclose(Row row) const {
        const double infinity = std::numeric_limits<double>::infinity();
        double low = smallest ? infinity : -infinity, high = low;
        // Lemma 13: a row sums one product per output and an offset.
        const double rounding = gamma(Format<double>::unit, outputs + 2, kernel_extra_roundings);
        for (int r = 0; r < rows; ++r) {
            double center = offsets[r], magnitude = std::abs(center), radius = 0;
            row(directions + size_t(r) * outputs, center, magnitude, radius);
            radius = radius * sum64 + rounding * magnitude;
            if (!(radius < infinity) || !(std::abs(center) < infinity))
                return {-infinity, infinity};  // overflow or NaN: no bound
            low = smallest ? std::min(low, center - radius) : std::max(low, center - radius);
            high = smallest ? std::min(high, center + radius) : std::max(high, center + radius);
        }
        return {low, high};
    }
};

}  // namespace FETA_ISA
}  // namespace feta

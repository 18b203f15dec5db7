// Outputs: scores known to within some reach, alone and pairwise, as judges and objectives see them.
#pragma once
#include "points.hpp"
#include "zonotope.hpp"

namespace feta {
namespace FETA_ISA {

// Over one node, a lane of a zonotope; `margin` is what the source may add to each score's error.
template <class T> struct NodeOutputs {
    const Zonotope<T>& z;
    int lane;
    const double* margin;
    double slack;
    double value(int o) const {
        return z.single() ? (double(z.low()[lane]) + z.high()[lane]) / 2 : z.center(o)[lane];
    }
    double reach(int o) const {
        if (z.single())
            return (double(z.high()[lane]) - z.low()[lane]) / 2 * (1 + 0x1p-30) + margin[o] + slack;
        double sum = z.box(o)[lane];
        for (int g = 0; g < z.generators(); ++g) sum += std::abs(double(z.generator(g, o)[lane]));
        return sum * (1 + 0x1p-30) + margin[o] + slack;
    }
    double reach(int one, int other) const {
        double sum = double(z.box(one)[lane]) + z.box(other)[lane];
        for (int g = 0; g < z.generators(); ++g)
            sum += std::abs(double(z.generator(g, one)[lane]) - z.generator(g, other)[lane]);
        return sum * (1 + 0x1p-30) + margin[one] + margin[other] + slack;
    }
};

// At one counterpart.
template <class T> struct PointOutputs {
    const Points<T>& points;
    int point;
    const double* error;
    const double* margin;  // of the source, if it has to be cleared as well
    double slack;
    double value(int o) const { return points.output(o)[point]; }
    double off(int o) const { return error[o] + (margin ? margin[o] : 0.0); }
    double reach(int o) const { return off(o) + slack; }
    double reach(int one, int other) const {
        return off(one) + off(other) + slack +
               0x1p-50 * (std::abs(value(one)) + std::abs(value(other)));
    }
};

// Directions · outputs + offsets, the largest of them, or the smallest.
struct Objective {
    int rows = 0, outputs = 1;
    const double* directions = nullptr;  // (rows, outputs)
    const double* offsets = nullptr;     // (rows)
    bool least = false;

    // Whether a higher single output (sign 1), or a lower one, can make it larger.
    bool looks(double sign) const {
        for (int r = 0; r < rows; ++r)
            if (outputs == 1 && directions[r] * sign > 0) return true;
        return false;
    }

    // How far off its value at a point can be, from the outputs' errors.
    double error(const double* errors) const {
        double most = 0;
        for (int r = 0; r < rows; ++r) {
            double sum = 0;
            for (int o = 0; o < outputs; ++o)
                sum += std::abs(directions[size_t(r) * outputs + o]) * errors[o];
            most = std::max(most, sum);
        }
        return most;
    }

    // The largest it can be over a node.
    template <class T> double high(const Zonotope<T>& z, int lane) const {
        if (z.single())
            return fold([&](const double* direction, double& middle, double& size, double& wide) {
                       const double low = z.low()[lane], high = z.high()[lane];
                       middle += direction[0] * (low + high) / 2;
                       wide += std::abs(direction[0]) * (high - low) / 2;
                       size += std::abs(direction[0]) * std::max(std::abs(low), std::abs(high));
                   })
                .second;
        return fold([&](const double* direction, double& middle, double& size, double& wide) {
                   for (int o = 0; o < outputs; ++o) {
                       middle += direction[o] * z.center(o)[lane];
                       size += std::abs(direction[o] * z.center(o)[lane]);
                       wide += std::abs(direction[o]) * z.box(o)[lane];
                   }
                   for (int g = 0; g < z.generators(); ++g) {
                       double sum = 0;
                       for (int o = 0; o < outputs; ++o)
                           sum += direction[o] * z.generator(g, o)[lane];
                       wide += std::abs(sum);
                   }
               })
            .second;
    }

    // The least and the largest it can be at a point.
    template <class T>
    std::pair<double, double> range(const Points<T>& points, int point, const double* error) const {
        return fold([&](const double* direction, double& middle, double& size, double& wide) {
            for (int o = 0; o < outputs; ++o) {
                const double value = points.output(o)[point];
                middle += direction[o] * value;
                size += std::abs(direction[o] * value);
                wide += std::abs(direction[o]) * error[o];
            }
        });
    }

  private:
    template <class Row> std::pair<double, double> fold(Row row) const {
        const double none = std::numeric_limits<double>::infinity();
        double low = least ? none : -none, high = low;
        for (int r = 0; r < rows; ++r) {
            double middle = offsets[r], size = std::abs(middle), wide = 0;
            row(directions + size_t(r) * outputs, middle, size, wide);
            wide = wide * (1 + 0x1p-30) + 0x1p-48 * size;
            if (!(wide < none) || !(std::abs(middle) < none))
                return {-none, none};  // nothing is known
            low = least ? std::min(low, middle - wide) : std::max(low, middle - wide);
            high = least ? std::min(high, middle + wide) : std::max(high, middle + wide);
        }
        return {low, high};
    }
};

}  // namespace FETA_ISA
}  // namespace feta

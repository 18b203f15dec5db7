// RowCheck: whether the shared columns of a row lie in the space. It may reject a valid row.
#pragma once
#include <cmath>

#include "forest_spec.hpp"

namespace feta {
namespace forest {

class RowCheck {
  public:
    explicit RowCheck(const ForestSpec& from) : limits(from.limits) {}

    bool usable() const { return !limits.empty(); }

    bool passes(const double* row) const {
        int32_t group = -1;
        double ones = 1;
        for (const Limit& limit : limits) {
            const double value = row[limit.column];
            if (!(value >= limit.low && value <= limit.high)) return false;  // also NaN
            if (limit.integer && !(std::abs(value) < 0x1p53 && double(int64_t(value)) == value))
                return false;
            if (limit.group != group) {
                if (group >= 0 && ones != 1) return false;
                group = limit.group;
                ones = 0;
            }
            ones += value;  // 0 or 1 in a group
        }
        return group < 0 || ones == 1;
    }

  private:
    const std::vector<Limit>& limits;
};

}  // namespace forest
}  // namespace feta

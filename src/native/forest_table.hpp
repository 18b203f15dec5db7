// Table: the exact sums of all counterparts of a person, one cell per combination of classes.
//
// A box is added to a small table of the axes that restrict it, as differences along the longest of
// them. Sums of these differences may wrap, but the sums of cells cannot.
#pragma once
#include <array>
#include <bit>
#include <numeric>

#include "forest_classes.hpp"

namespace feta {
namespace forest {

constexpr size_t max_axes = 8;

template <class Int> class Table {
  public:
    explicit Table(const ForestSpec& from)
        : spec(from), leaves(from.leaves.begin(), from.leaves.end()),
          base(from.base.begin(), from.base.end()), classes(from.axes.size()),
          tables(size_t(1) << from.axes.size()) {}

    const ForestSpec& spec;
    std::vector<Int> leaves, base;
    std::vector<Classes> classes;  // by axis
    std::vector<int> order;        // axes, those with few classes first
    std::vector<Int> sums;         // (outputs, cells)
    size_t cells = 1, row = 1;     // row: the cells along the last axis

    // Find the classes; return the number of cells.
    size_t prepare(const Boxes& boxes) {
        const size_t n_axes = spec.axes.size();
        for (size_t a = 0; a < n_axes; ++a) classes[a].find(spec.axes[a], boxes.splits[a]);
        order.resize(n_axes);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return classes[size_t(a)].count() < classes[size_t(b)].count();
        });
        cells = 1;
        for (const Classes& axis : classes) cells *= size_t(axis.count());
        row = n_axes ? size_t(classes[size_t(order.back())].count()) : 1;
        return cells;
    }

    // Sum all boxes over all cells.
    void fill(const Boxes& boxes) {
        std::vector<Int> constant = base;
        used.clear();
        for (size_t b = 0; b < boxes.count(); ++b) {
            const Int* value = &leaves[size_t(boxes.leaf_of[b]) * size_t(spec.outputs)];
            const uint32_t axes = boxes.axes_of[b];
            if (axes == 0)
                for (size_t o = 0; o < constant.size(); ++o) constant[o] = plus(constant[o], value[o]);
            else
                add(part(axes), boxes.bits(b), value);
        }
        for (const uint32_t axes : used) accumulate(tables[axes]);
        merge();
        for (size_t o = 0; o < constant.size(); ++o)
            for (size_t c = 0; c < cells; ++c)
                sums[o * cells + c] = plus(sums[o * cells + c], constant[o]);
    }

    // Call visit(first cell, lowest id, number of counterparts per value of the last axis) for each
    // row of cells, until it returns false.
    template <class Visit> void for_each_row(Visit visit) const {
        std::array<size_t, max_axes> at{};
        const size_t outer = order.empty() ? 0 : order.size() - 1;
        for (size_t cell = 0; cell < cells; cell += row) {
            uint64_t id = 0, size = 1;
            for (size_t i = 0; i < outer; ++i) {
                const size_t axis = size_t(order[i]);
                id += classes[axis].first[at[i]] * spec.axes[axis].stride;
                size *= classes[axis].sizes[at[i]];
            }
            if (!visit(cell, id, size)) return;
            for (size_t i = outer; i-- > 0;) {
                if (++at[i] < size_t(classes[size_t(order[i])].count())) break;
                at[i] = 0;
            }
        }
    }

    // Write the first group of a cell on each axis.
    void groups_of(size_t cell, int32_t* groups) const {
        for (size_t i = order.size(); i-- > 0;) {
            const Classes& axis = classes[size_t(order[i])];
            groups[order[i]] = axis.group[cell % size_t(axis.count())];
            cell /= size_t(axis.count());
        }
    }

    // Return the cell of the counterpart with these groups.
    size_t cell_of(const int32_t* groups) const {
        size_t cell = 0;
        for (const int axis : order) {
            const Classes& found = classes[size_t(axis)];
            cell = cell * size_t(found.count()) + size_t(found.of[size_t(groups[axis])]);
        }
        return cell;
    }

  private:
    struct Part {  // sums over the classes of some axes
        uint32_t axes = 0;
        std::vector<int> order;
        size_t cells = 0, row = 1;
        std::vector<Int> sums;
    };
    std::vector<Part> tables;    // by set of axes
    std::vector<uint32_t> used;  // the sets that are not empty

    // Add without undefined overflow.
    static Int plus(Int a, Int b) {
        using Unsigned = std::conditional_t<sizeof(Int) == 8, uint64_t, unsigned __int128>;
        return Int(Unsigned(a) + Unsigned(b));
    }

    Part& part(uint32_t axes) {
        Part& found = tables[axes];
        if (std::find(used.begin(), used.end(), axes) != used.end()) return found;
        used.push_back(axes);
        found.axes = axes;
        found.order.clear();
        found.cells = 1;
        for (const int axis : order)
            if (axes >> axis & 1) {
                found.order.push_back(axis);
                found.row = size_t(classes[size_t(axis)].count());
                found.cells *= found.row;
            }
        found.sums.assign(found.cells * size_t(spec.outputs), Int(0));
        return found;
    }

    void add(Part& to, const uint64_t* bits, const Int* value) {
        add_axis(to, bits, value, 0, 0);
    }

    void add_axis(Part& to, const uint64_t* bits, const Int* value, size_t depth, size_t cell) {
        const size_t number = size_t(to.order[depth]);
        const Axis& axis = spec.axes[number];
        const Classes& found = classes[number];
        const uint64_t* part_bits = bits + axis.word;
        const bool last = depth + 1 == to.order.size();
        cell *= size_t(found.count());
        bool inside = false;
        for (size_t w = 0; w < axis.words; ++w) {
            if (!last) {
                for (uint64_t set = part_bits[w] & found.leaders[w]; set; set &= set - 1) {
                    const size_t g = 64 * w + size_t(std::countr_zero(set));
                    add_axis(to, bits, value, depth + 1, cell + size_t(found.of[g]));
                }
                continue;
            }
            // Leaders at which the box begins or ends.
            uint64_t rest = found.leaders[w];
            while (rest) {
                const uint64_t wanted = inside ? ~part_bits[w] : part_bits[w];
                const uint64_t hits = rest & wanted;
                if (!hits) break;
                const int bit = std::countr_zero(hits);
                const size_t at = cell + size_t(found.of[64 * w + size_t(bit)]);
                for (size_t o = 0; o < size_t(spec.outputs); ++o) {
                    Int& sum = to.sums[o * to.cells + at];
                    sum = plus(sum, inside ? plus(~value[o], Int(1)) : value[o]);
                }
                inside = !inside;
                rest &= ~((hits & -hits) - 1);
            }
        }
    }

    void accumulate(Part& of) const {
        for (size_t from = 0; from < of.sums.size(); from += of.row)
            for (size_t c = from + 1; c < from + of.row; ++c)
                of.sums[c] = plus(of.sums[c], of.sums[c - 1]);
    }

    // Add each table to the smallest one with more axes, and the rest to the whole.
    void merge() {
        std::sort(used.begin(), used.end(), [](uint32_t a, uint32_t b) {
            return std::popcount(a) < std::popcount(b);
        });
        sums.assign(cells * size_t(spec.outputs), Int(0));
        for (size_t u = 0; u < used.size(); ++u) {
            Part* target = nullptr;
            for (size_t v = u + 1; v < used.size(); ++v)
                if ((used[u] & used[v]) == used[u] && used[u] != used[v] &&
                    (!target || tables[used[v]].cells < target->cells))
                    target = &tables[used[v]];
            const Part& from = tables[used[u]];
            if (target)
                spread(from, target->order, target->cells, target->sums);
            else
                spread(from, order, cells, sums);
        }
    }

    // Add a table to one with more axes.
    void spread(const Part& from, const std::vector<int>& axes, size_t n_cells,
                std::vector<Int>& to) const {
        std::array<size_t, max_axes> steps{}, counts{}, at{};
        size_t step = 1;
        for (size_t i = axes.size(); i-- > 0;) {
            counts[i] = size_t(classes[size_t(axes[i])].count());
            if (from.axes >> axes[i] & 1) {
                steps[i] = step;
                step *= counts[i];
            }
        }
        const size_t last = axes.size() - 1, length = counts[last];
        size_t source = 0;
        for (size_t cell = 0; cell < n_cells; cell += length) {
            for (size_t o = 0; o < size_t(spec.outputs); ++o) {
                const Int* add = &from.sums[o * from.cells + source];
                Int* sum = &to[o * n_cells + cell];
                if (steps[last])
                    for (size_t j = 0; j < length; ++j) sum[j] = plus(sum[j], add[j]);
                else
                    for (size_t j = 0; j < length; ++j) sum[j] = plus(sum[j], add[0]);
            }
            for (size_t i = last; i-- > 0;) {
                source += steps[i];
                if (++at[i] < counts[i]) break;
                source -= steps[i] * counts[i];
                at[i] = 0;
            }
        }
    }
};

}  // namespace forest
}  // namespace feta

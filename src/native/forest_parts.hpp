// Parts: sums of boxes in small tables, one per set of axes that restrict a box.
//
// Along the inner axis, tables hold differences: a box adds its value where a run of its classes
// begins and subtracts it where the run ends. Differences may wrap, but sums of cells cannot.
#pragma once
#include <numeric>

#include "forest_classes.hpp"

namespace feta {
namespace forest {

constexpr size_t max_axes = 8;

// Add without undefined overflow.
template <class Int> Int wrapped_sum(Int a, Int b) {
    using Unsigned = std::conditional_t<sizeof(Int) == 8, uint64_t, unsigned __int128>;
    return Int(Unsigned(a) + Unsigned(b));
}
template <class Int> Int negated(Int a) { return wrapped_sum(Int(~a), Int(1)); }

// The axes of tables: outer ones, whose combinations are rows, and one along rows.
struct Shape {
    std::vector<size_t> outer;
    size_t inner = 0, row = 1, combinations = 1;
    std::vector<size_t> counts;  // by outer axis: classes
};

template <class Int> class Parts {
  public:
    Parts(const Layout& from, const std::vector<Classes>& of)
        : layout(from), classes(of), tables(size_t(1) << from.spec.axes.size()),
          outputs(size_t(from.spec.outputs)) {}

    void begin(const Shape& from) {
        shape = &from;
        for (const uint32_t axes : used) tables[axes].used = false;
        used.clear();
    }

    // Add a box; `axes` are those that restrict it, as bits.
    void add(uint32_t axes, const uint64_t* box, const Int* value, bool negative) {
        Part& part = tables[axes];
        if (!part.used) start(part, axes);
        add_axis(part, box, value, negative, 0, 0);
    }

    // Add each table to the smallest one with more axes; the others remain.
    void merge() {
        std::sort(used.begin(), used.end(),
                  [](uint32_t a, uint32_t b) { return std::popcount(a) < std::popcount(b); });
        size_t kept = 0;
        for (size_t u = 0; u < used.size(); ++u) {
            Part* target = nullptr;
            for (size_t v = u + 1; v < used.size(); ++v)
                if ((used[u] & used[v]) == used[u] &&
                    (!target || tables[used[v]].cells < target->cells))
                    target = &tables[used[v]];
            Part& from = tables[used[u]];
            if (target) {
                spread(from, *target);
                from.used = false;
            } else
                std::swap(used[kept++], used[u]);
        }
        used.resize(kept);
    }

    // Write the differences along a row, (outputs, row); `at` are the classes of the outer axes.
    void row(const size_t* at, Int* differences) const {
        const size_t length = shape->row;
        bool first = true;
        for (const uint32_t axes : used) {
            const Part& part = tables[axes];
            size_t from = 0;
            for (size_t i = 0; i < shape->outer.size(); ++i) from += part.steps[i] * at[i];
            for (size_t o = 0; o < outputs; ++o) {
                const Int* source = &part.sums[o * part.cells + from];
                Int* to = differences + o * length;
                if (first) {
                    std::copy_n(source, part.row, to);
                    std::fill(to + part.row, to + length, Int(0));
                } else
                    for (size_t j = 0; j < part.row; ++j) to[j] = wrapped_sum(to[j], source[j]);
            }
            first = false;
        }
        if (first) std::fill_n(differences, outputs * length, Int(0));
    }

    bool empty() const { return used.empty(); }

  private:
    struct Part {
        bool used = false;
        size_t row = 1, cells = 1;
        std::vector<size_t> outer;             // positions in the shape, ascending
        std::array<size_t, max_axes> steps{};  // by outer axis of the shape; 0 if not in the set
        std::vector<Int> sums;                 // (outputs, cells)
    };
    const Layout& layout;
    const std::vector<Classes>& classes;
    const Shape* shape = nullptr;
    std::vector<Part> tables;    // by set of axes
    std::vector<uint32_t> used;  // the sets that are not empty
    size_t outputs;

    void start(Part& part, uint32_t axes) {
        used.push_back(axes);
        part.used = true;
        part.row = axes >> shape->inner & 1 ? shape->row : 1;
        part.cells = part.row;
        part.outer.clear();
        for (size_t i = shape->outer.size(); i-- > 0;) {
            part.steps[i] = 0;
            if (!(axes >> shape->outer[i] & 1)) continue;
            part.outer.insert(part.outer.begin(), i);
            part.steps[i] = part.cells;
            part.cells *= shape->counts[i];
        }
        part.sums.assign(part.cells * outputs, Int(0));
    }

    void add_axis(Part& part, const uint64_t* box, const Int* value, bool negative, size_t depth,
                  size_t cell) {
        if (depth == part.outer.size()) return add_row(part, box, value, negative, cell);
        const size_t position = part.outer[depth], axis = shape->outer[position];
        uint64_t storage;
        const uint64_t* groups = layout.boxes.groups(box, axis, storage);
        classes[axis].for_each(groups, [&](size_t number) {
            add_axis(part, box, value, negative, depth + 1, cell + number * part.steps[position]);
        });
    }

    void add_row(Part& part, const uint64_t* box, const Int* value, bool negative, size_t cell) {
        if (part.row == 1) return add_value(part, cell, value, negative);
        uint64_t storage;
        const uint64_t* groups = layout.boxes.groups(box, shape->inner, storage);
        classes[shape->inner].for_each_edge(groups, [&](size_t at, bool begins) {
            add_value(part, cell + at, value, begins == negative);
        });
    }

    void add_value(Part& part, size_t cell, const Int* value, bool negative) {
        const Int sign = negative ? Int(-1) : Int(0);  // x ^ −1 is −x − 1
        for (size_t o = 0; o < outputs; ++o) {
            Int& sum = part.sums[o * part.cells + cell];
            sum = wrapped_sum(sum, wrapped_sum(Int(value[o] ^ sign), Int(-sign)));
        }
    }

    // Add a table to one with more axes.
    void spread(const Part& from, Part& to) const {
        std::array<size_t, max_axes> at{};
        size_t source = 0;
        for (size_t cell = 0; cell < to.cells; cell += to.row) {
            for (size_t o = 0; o < outputs; ++o) {
                const Int* add = &from.sums[o * from.cells + source];
                Int* sum = &to.sums[o * to.cells + cell];
                for (size_t j = 0; j < from.row; ++j) sum[j] = wrapped_sum(sum[j], add[j]);
            }
            for (size_t d = to.outer.size(); d-- > 0;) {
                const size_t position = to.outer[d];
                source += from.steps[position];
                if (++at[d] < shape->counts[position]) break;
                source -= from.steps[position] * shape->counts[position];
                at[d] = 0;
            }
        }
    }
};

}  // namespace forest
}  // namespace feta

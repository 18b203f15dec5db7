// Slices: the exact sums of all counterparts of a person, one row of cells at a time.
//
// A cell is a combination of classes. The longest category axis may be sparse: then there is one
// slice per class of it, the sums of the base and of the slice's own boxes. A box with most classes
// of the sparse axis is in the base, and its value is subtracted in the other slices. Bounds decide
// most rows before they are computed.
#pragma once
#include "forest_parts.hpp"
#include "forest_sums.hpp"

namespace feta {
namespace forest {

// Smaller tables have no sparse axis.
constexpr size_t min_sparse_cells = 1024, min_sparse_classes = 4;

// A row of cells: a class of the sparse axis, and a combination of classes of the outer axes.
struct Row {
    size_t slice = 0, combination = 0;
    uint64_t id = 0;    // the lowest assignment id, without the inner axis
    uint64_t size = 1;  // counterparts per value of the inner axis
};

template <class Int> class Slices {
  public:
    Slices(const Layout& from, const Sums<Int>& with)
        : layout(from), spec(from.spec), values(with), classes(from.spec.axes.size()),
          base_parts(from, classes), slice_parts(from, classes) {}

    const Layout& layout;
    const ForestSpec& spec;
    const Sums<Int>& values;
    std::vector<Classes> classes;  // by axis
    Shape shape;
    bool has_sparse = false;
    size_t sparse = 0, n_slices = 1;
    std::vector<uint64_t> inner_sizes, inner_ids;  // by class of the inner axis

    // Find the classes and divide the axes; return the number of cells.
    size_t prepare(const Boxes& from) {
        size_t cells = 1;
        for (size_t a = 0; a < classes.size(); ++a) {
            classes[a].find(spec.axes[a], layout.boxes, from.splits[a]);
            cells *= classes[a].count();
        }
        choose_axes(cells);
        return cells;
    }

    // Sum the boxes of the base, and list those of each slice.
    void fill(const Boxes& from) {
        boxes = &from;
        base_parts.begin(shape);
        constant = values.base;
        add_leaves();
        for (const uint32_t box : boxes->different)
            if (!is_sparse(box)) add_to_base(box, layout.boxes.axes_of(box));
        list_slices();
        sum_base();
        loaded = SIZE_MAX;
    }

    // Visit all rows. visit.skip(row, low, high) handles a row by bounds of its sums, if it can;
    // visit.take(row, sums) handles it by its sums, (outputs, cells of the row), and returns
    // whether to continue. visit.done() ends the first pass, which computes no row.
    template <class Visit> void for_each_row(Visit& visit) {
        pending.clear();
        const bool bounded = spec.outputs == 1;
        for (size_t slice = 0; slice < n_slices; ++slice)
            for (size_t c = 0; c < shape.combinations; ++c) {
                const Row row = describe(slice, c);
                if (!bounded || !skip(visit, row)) pending.push_back(row);
            }
        if (visit.done()) return;
        for (const Row& row : pending) {
            if (bounded && skip(visit, row)) continue;
            if (!visit.take(row, sums(row))) return;
        }
    }

    // Call visit(counterparts per inner value, sums) for all rows of a slice.
    template <class Visit> void for_each_row_of(size_t slice, Visit visit) {
        for (size_t c = 0; c < shape.combinations; ++c) {
            const Row row = describe(slice, c);
            visit(row.size, sums(row));
        }
    }

    // Bounds of what the boxes of a slice add to the base, if there is one output.
    Int lowest(size_t slice) const { return has_sparse ? low[slice] : Int(0); }
    Int highest(size_t slice) const { return has_sparse ? high[slice] : Int(0); }
    std::pair<Int, Int> base_range(size_t c) const { return {base_low[c], base_high[c]}; }
    const Int* base_row(size_t c) const { return &base_sums[c * shape.row]; }
    uint64_t outer_size(size_t c) const { return outer_sizes[c]; }
    uint64_t sparse_size(size_t slice) const {
        return has_sparse ? classes[sparse].sizes[slice] : 1;
    }
    uint64_t inner_total() const { return total; }

    // Write the first group of a cell on each axis.
    void groups_of(const Row& row, size_t j, int32_t* groups) const {
        if (classes.empty()) return;
        const size_t* at = &combinations[row.combination * shape.outer.size()];
        for (size_t i = 0; i < shape.outer.size(); ++i)
            groups[shape.outer[i]] = classes[shape.outer[i]].group[at[i]];
        if (has_sparse) groups[sparse] = classes[sparse].group[row.slice];
        groups[shape.inner] = classes[shape.inner].group[j];
    }

    // Return the index of the cell with these groups: slice, combination, cell of the row.
    size_t cell_of(const int32_t* groups) const {
        if (classes.empty()) return 0;
        size_t cell = has_sparse ? class_of(sparse, groups) : 0;
        for (const size_t axis : shape.outer)
            cell = cell * classes[axis].count() + class_of(axis, groups);
        return cell * shape.row + class_of(shape.inner, groups);
    }

  private:
    const Boxes* boxes = nullptr;
    Parts<Int> base_parts, slice_parts;
    std::vector<Int> constant;
    std::vector<Int> base_sums;            // (combinations, outputs, row)
    std::vector<Int> base_low, base_high;  // by combination, if there is one output
    std::vector<Int> row_sums;
    std::vector<size_t> combinations;  // (combinations, outer axes): classes
    std::vector<Row> pending;
    std::vector<uint64_t> outer_ids, outer_sizes;
    uint64_t total = 1;  // the values of the inner axis
    size_t loaded = SIZE_MAX;

    struct Term {  // a box of a slice
        uint32_t box;
        bool negative;
    };
    struct TreeRange {  // of added and of taken values
        uint32_t tree = UINT32_MAX;
        std::array<Int, 2> least{}, most{};
    };
    // By box with the sparse axis: whether it is in the base, and the groups whose slices have it.
    std::vector<uint8_t> in_base;
    std::vector<uint64_t> own_slices;  // (boxes, words)
    size_t n_words = 1;
    std::vector<Int> totals;               // (boxes, outputs): the sums of their reached leaves
    std::vector<TreeRange> ranges;         // by slice
    std::vector<std::vector<Term>> terms;  // by slice
    std::vector<Int> low, high;            // by slice: bounds of the sums of its boxes

    size_t class_of(size_t axis, const int32_t* groups) const {
        return size_t(classes[axis].of[size_t(groups[axis])]);
    }

    void choose_axes(size_t cells) {
        const size_t n_axes = classes.size();
        shape = Shape{};
        has_sparse = false;
        n_slices = 1;
        const auto longer = [&](size_t a, size_t b) {
            const auto rank = [&](size_t axis) {
                return std::make_pair(spec.axes[axis].ordered, classes[axis].count());
            };
            return rank(a) < rank(b);
        };
        for (size_t a = 1; a < n_axes; ++a)
            if (longer(shape.inner, a)) shape.inner = a;
        for (size_t a = 0; a < n_axes && cells >= min_sparse_cells; ++a) {
            if (a == shape.inner || classes[a].count() < min_sparse_classes) continue;
            if (has_sparse && classes[a].count() <= classes[sparse].count()) continue;
            has_sparse = true;
            sparse = a;
        }
        for (size_t a = 0; a < n_axes; ++a) {
            if (a == shape.inner || (has_sparse && a == sparse)) continue;
            shape.outer.push_back(a);
        }
        for (const size_t a : shape.outer) {
            shape.counts.push_back(classes[a].count());
            shape.combinations *= classes[a].count();
        }
        if (has_sparse) n_slices = classes[sparse].count();
        describe_inner();
        list_combinations();
    }

    void describe_inner() {
        inner_sizes.assign(1, 1);
        inner_ids.assign(1, 0);
        if (!classes.empty()) {
            const Classes& inner = classes[shape.inner];
            shape.row = inner.count();
            inner_sizes = inner.sizes;
            inner_ids = inner.first;
            for (uint64_t& id : inner_ids) id *= spec.axes[shape.inner].stride;
        }
        total = std::accumulate(inner_sizes.begin(), inner_sizes.end(), uint64_t(0));
    }

    void list_combinations() {
        const size_t n_outer = shape.outer.size();
        combinations.assign(shape.combinations * n_outer, 0);
        outer_ids.assign(shape.combinations, 0);
        outer_sizes.assign(shape.combinations, 1);
        for (size_t c = 0; c < shape.combinations; ++c) {
            size_t rest = c;
            for (size_t i = n_outer; i-- > 0;) {
                const size_t axis = shape.outer[i], at = rest % shape.counts[i];
                rest /= shape.counts[i];
                combinations[c * n_outer + i] = at;
                outer_ids[c] += classes[axis].first[at] * spec.axes[axis].stride;
                outer_sizes[c] *= classes[axis].sizes[at];
            }
        }
    }

    Row describe(size_t slice, size_t c) const {
        Row row{slice, c, outer_ids[c], outer_sizes[c]};
        if (has_sparse) {
            row.id += classes[sparse].first[slice] * spec.axes[sparse].stride;
            row.size *= classes[sparse].sizes[slice];
        }
        return row;
    }

    bool is_sparse(uint32_t box) const {
        return has_sparse && layout.boxes.axes_of(box) >> sparse & 1;
    }

    // Sum the values of leaves with the same box.
    void add_leaves() {
        const size_t outputs = constant.size();
        totals.resize(layout.boxes.count() * outputs);
        for (const uint32_t box : boxes->different)
            std::fill_n(&totals[box * outputs], outputs, Int(0));
        for (size_t n = 0; n < boxes->count(); ++n) {
            const Int* value = values.values(*boxes, n);
            Int* total_of = &totals[(*boxes)[n].box * outputs];
            for (size_t o = 0; o < outputs; ++o) total_of[o] = wrapped_sum(total_of[o], value[o]);
        }
    }

    // Add a box to the base; `axes` are those that restrict it there.
    void add_to_base(uint32_t box, uint32_t axes) {
        const Int* value = &totals[box * constant.size()];
        if (axes) return base_parts.add(axes, layout.boxes.bits(box), value, false);
        for (size_t o = 0; o < constant.size(); ++o)
            constant[o] = wrapped_sum(constant[o], value[o]);
    }

    void list_slices();
    void bound_slices();
    void sum_base();

    // Add the value of a box to the range of its tree in a slice.
    void widen(size_t slice, uint32_t tree, Int value, bool taken) {
        TreeRange& range = ranges[slice];
        if (range.tree != tree) {
            close(slice);
            range = TreeRange{};
            range.tree = tree;
        }
        range.least[taken] = std::min(range.least[taken], value);
        range.most[taken] = std::max(range.most[taken], value);
    }

    void close(size_t slice) {
        low[slice] += ranges[slice].least[0] + ranges[slice].least[1];
        high[slice] += ranges[slice].most[0] + ranges[slice].most[1];
    }

    template <class Visit> bool skip(Visit& visit, const Row& row) {
        Int least = base_low[row.combination], most = base_high[row.combination];
        if (has_sparse) {
            least += low[row.slice];
            most += high[row.slice];
        }
        return visit.skip(row, least, most);
    }

    // Compute the sums of a row.
    const Int* sums(const Row& row) {
        const size_t size = shape.row * size_t(spec.outputs);
        const Int* from = &base_sums[row.combination * size];
        if (!has_sparse || terms[row.slice].empty()) return from;
        if (loaded != row.slice) load(row.slice);
        row_sums.resize(size);
        slice_parts.row(combinations.data() + row.combination * shape.outer.size(),
                        row_sums.data());
        for (size_t o = 0; o < size; o += shape.row) {
            Int sum = 0;
            for (size_t j = o; j < o + shape.row; ++j) {
                sum = wrapped_sum(sum, row_sums[j]);
                row_sums[j] = wrapped_sum(sum, from[j]);
            }
        }
        return row_sums.data();
    }

    void load(size_t slice) {
        loaded = slice;
        slice_parts.begin(shape);
        for (const Term& term : terms[slice]) {
            const uint32_t axes = layout.boxes.axes_of(term.box) & ~(uint32_t(1) << sparse);
            slice_parts.add(axes, layout.boxes.bits(term.box),
                            &totals[term.box * size_t(spec.outputs)], term.negative);
        }
        slice_parts.merge();
    }
};

// List the boxes of each slice.
template <class Int> void Slices<Int>::list_slices() {
    if (!has_sparse) return;
    terms.resize(std::max(terms.size(), n_slices));
    for (auto& list : terms) list.clear();
    const Classes& found = classes[sparse];
    n_words = found.leaders.size();
    own_slices.resize(layout.boxes.count() * n_words);
    in_base.resize(layout.boxes.count());
    for (const uint32_t box : boxes->different) {
        if (!is_sparse(box)) continue;
        uint64_t storage;
        const uint64_t* groups = layout.boxes.groups(layout.boxes.bits(box), sparse, storage);
        size_t count = 0;
        for (size_t w = 0; w < n_words; ++w)
            count += size_t(std::popcount(groups[w] & found.leaders[w]));
        const bool most = 2 * count > n_slices;
        in_base[box] = most;
        uint64_t* own = &own_slices[box * n_words];
        for (size_t w = 0; w < n_words; ++w) own[w] = most ? ~groups[w] : groups[w];
        if (most) add_to_base(box, layout.boxes.axes_of(box) & ~(uint32_t(1) << sparse));
        found.for_each(own, [&](size_t slice) { terms[slice].push_back({box, most}); });
    }
    bound_slices();
}

// Bounds add one range per tree: boxes of one tree are disjoint, so at most one of the base and one
// of the slice contain a cell.
template <class Int> void Slices<Int>::bound_slices() {
    low.assign(n_slices, Int(0));
    high.assign(n_slices, Int(0));
    ranges.assign(n_slices, TreeRange{});
    for (size_t n = 0; n < boxes->count(); ++n) {
        const Leaf& leaf = (*boxes)[n];
        if (!is_sparse(leaf.box)) continue;
        const bool most = in_base[leaf.box];
        const Int value = most ? negated(*values.values(*boxes, n)) : *values.values(*boxes, n);
        classes[sparse].for_each(&own_slices[leaf.box * n_words],
                                 [&](size_t slice) { widen(slice, leaf.tree, value, most); });
    }
    for (size_t slice = 0; slice < n_slices; ++slice) close(slice);
}

template <class Int> void Slices<Int>::sum_base() {
    const size_t outputs = size_t(spec.outputs), size = shape.row * outputs;
    base_parts.merge();
    base_sums.resize(shape.combinations * size);
    base_low.resize(shape.combinations);
    base_high.resize(shape.combinations);
    for (size_t c = 0; c < shape.combinations; ++c) {
        Int* row = &base_sums[c * size];
        base_parts.row(combinations.data() + c * shape.outer.size(), row);
        for (size_t o = 0; o < outputs; ++o) {
            Int sum = constant[o];
            for (size_t j = o * shape.row; j < (o + 1) * shape.row; ++j)
                row[j] = sum = wrapped_sum(sum, row[j]);
        }
        base_low[c] = *std::min_element(row, row + shape.row);
        base_high[c] = *std::max_element(row, row + shape.row);
    }
}

}  // namespace forest
}  // namespace feta

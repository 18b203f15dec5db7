// The kernel of tree ensembles for both widths of sums, and its threads.
#include "forest.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "forest_check.hpp"
#include "forest_search.hpp"

namespace feta {
namespace forest {

namespace {

template <class Int> Int integer(const Pair& pair) {
    return Int(Wide((unsigned __int128)(pair.high) << 64 | uint64_t(pair.low)));
}

template <class Int> std::vector<Int> integers(const Pair* pairs, size_t count) {
    std::vector<Int> numbers(count);
    for (size_t n = 0; n < count; ++n) numbers[n] = integer<Int>(pairs[n]);
    return numbers;
}

// Bounds add up to three times the largest leaves of all trees, so four bits remain.
constexpr int rounded_bits = 58;

std::unique_ptr<LaneSums> make_lanes() {
#if defined(FETA_HAVE_AVX2)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") &&
        __builtin_cpu_supports("bmi"))
        return make_lanes_avx2();
#endif
    return make_lanes_portable();
}

template <class Int> class SizedKernel final : public Kernel {
  public:
    explicit SizedKernel(ForestSpec from)
        : spec(std::move(from)), layout(spec), leaf_sets(layout), sums(layout, 0), check(spec) {
        if (spec.wide && spec.outputs == 1 && spec.rule.kind == RuleKind::threshold)
            rounded.emplace(layout, shift_to_fit(layout, rounded_bits));
        if (spec.outputs == 1) store_values();
        if (spec.outputs == 1 && spec.rule.kind == RuleKind::threshold) {
            lanes.emplace(layout, leaf_sets, make_lanes());
            if (!lanes->usable) lanes.reset();
        }
    }

    Results tally(const Rows& rows, const Votes* votes, bool majority,
                  const Options& options) override {
        Listed listed;
        if (votes) listed = {votes->groups, votes->votes};
        return for_each(rows, options, [&](auto& search, size_t row, auto& out, auto& limits) {
            if (votes)
                search.tally_listed(person(rows, row), out, listed, limits);
            else
                search.tally(person(rows, row), out, true, majority, limits);
        });
    }

    bool majority(const Rows& rows, bool ties_to_last, int threads, int32_t* winners) override {
        std::atomic<bool> valid{true};
        Options options;
        options.threads = threads;
        work_on(rows, options, [&](auto& search, size_t row, auto& out, auto&) {
            if (!valid || (check.usable() && !check.passes(person(rows, row)))) {
                valid = false;
                return;
            }
            search.majority(person(rows, row), out);
            const auto first = out.counts.begin(), last = out.counts.end();
            const auto best = std::max_element(first, last);
            winners[row] = int32_t(best - first);
            for (auto at = best; ties_to_last && at != last; ++at)
                if (*at == *best) winners[row] = int32_t(at - first);
        });
        return valid;
    }

    Results find(const Rows& rows, const References& references, const Options& options) override {
        return for_each(rows, options, [&](auto& search, size_t row, auto& out, auto& limits) {
            Band<Int> band;
            if (spec.rule.kind == RuleKind::tolerance) {
                const std::vector<Int> ends = integers<Int>(references.bands + 6 * row, 6);
                band = {ends[0], ends[1], ends[2], ends[3], ends[4], ends[5]};
            }
            search.find(person(rows, row), out, references.decisions[row], band,
                        references.centers[row], references.half, limits);
        });
    }

    Results worst(const Rows& rows, const Objectives& objectives, const Options& options) override {
        const size_t n_rows = size_t(objectives.rows);
        return for_each(rows, options, [&](auto& search, size_t row, auto& out, auto& limits) {
            const size_t kind = size_t(objectives.kind[row]);
            const auto low = integers<Int>(objectives.low + kind * n_rows, n_rows);
            const auto high = integers<Int>(objectives.high + kind * n_rows, n_rows);
            const Objective<Int> objective{
                objectives.rows,
                objectives.directions + kind * n_rows * size_t(spec.outputs),
                low.data(),
                high.data(),
                objectives.smallest,
                integer<Int>(objectives.floors[row]),
                integer<Int>(objectives.levels[kind])};
            search.worst(person(rows, row), out, objective, limits);
        });
    }

  private:
    ForestSpec spec;
    Layout layout;
    LeafSets leaf_sets;
    Sums<Int> sums;
    std::optional<Sums<int64_t>> rounded;
    std::optional<LaneForest> lanes;
    RowCheck check;
    std::mutex lock;
    std::vector<std::unique_ptr<Search<Int>>> idle;  // reused, because they keep their memory

    // Sums of 64 bits read the values of leaves from the layout.
    void store_values() {
        Sums<int64_t>* stored = rounded ? &*rounded : nullptr;
        if constexpr (std::is_same_v<Int, int64_t>) stored = &sums;
        if (!stored) return;
        layout.set_values(stored->leaves);
        stored->in_layout = true;
    }

    const double* person(const Rows& rows, size_t row) const {
        return rows.data + row * size_t(spec.columns);
    }

    std::unique_ptr<Search<Int>> acquire() {
        const std::lock_guard<std::mutex> guard(lock);
        if (idle.empty())
            return std::make_unique<Search<Int>>(
                layout, leaf_sets, sums, rounded ? &*rounded : nullptr, lanes ? &*lanes : nullptr);
        std::unique_ptr<Search<Int>> search = std::move(idle.back());
        idle.pop_back();
        return search;
    }

    Results allocate(size_t count) const {
        Results results;
        results.classes = size_t(std::max(2, spec.rule.classes));
        results.counts.resize(count * results.classes);
        for (auto* flags : {&results.runtime_safe, &results.finished, &results.found})
            flags->resize(count);
        results.assignment_id.resize(count);
        results.cost.resize(count);
        results.candidates.resize(count);
        return results;
    }

    template <class Query> Results for_each(const Rows& rows, const Options& options, Query query) {
        Results results = allocate(rows.count);
        work_on(rows, options, [&](auto& search, size_t row, Outcome& out, const Limits& limits) {
            query(search, row, out, limits);
            write(results, row, out);
        });
        return results;
    }

    // Call query(search, row, outcome, limits) for each row, on several threads.
    template <class Query> void work_on(const Rows& rows, const Options& options, Query query) {
        Limits limits;
        limits.evaluations = options.evaluations;
        if (options.seconds >= 0)
            limits.deadline = Clock::now() + std::chrono::nanoseconds(
                                                 int64_t(std::min(options.seconds, 1e9) * 1e9));
        std::atomic<size_t> next{0};
        const size_t batch = std::clamp<size_t>(rows.count / 64, 1, 16);
        std::exception_ptr error;
        const auto work = [&] {
            try {
                std::unique_ptr<Search<Int>> search = acquire();
                Outcome out;
                for (size_t from = next.fetch_add(batch); from < rows.count;
                     from = next.fetch_add(batch))
                    for (size_t row = from; row < std::min(from + batch, rows.count); ++row) {
                        out.reset(size_t(std::max(2, spec.rule.classes)));
                        query(*search, row, out, limits);
                    }
                const std::lock_guard<std::mutex> guard(lock);
                idle.push_back(std::move(search));
            } catch (...) {
                const std::lock_guard<std::mutex> guard(lock);
                error = std::current_exception();
            }
        };
        run(std::clamp<size_t>((rows.count + batch - 1) / batch, 1,
                               size_t(std::max(1, options.threads))),
            work);
        if (error) std::rethrow_exception(error);
    }

    template <class Work> static void run(size_t threads, Work work) {
        if (threads == 1) return work();
        std::vector<std::thread> workers(threads - 1);
        for (std::thread& worker : workers) try {
                worker = std::thread(work);
            } catch (const std::system_error&) {
                break;  // the other threads do its work
            }
        work();
        for (std::thread& worker : workers)
            if (worker.joinable()) worker.join();
    }

    static void write(Results& results, size_t row, Outcome& out) {
        std::copy(out.counts.begin(), out.counts.end(),
                  results.counts.begin() + ptrdiff_t(row * results.classes));
        results.runtime_safe[row] = out.runtime_safe;
        results.finished[row] = out.finished;
        results.found[row] = out.found;
        results.assignment_id[row] = out.assignment_id;
        results.cost[row] = out.cost;
        results.candidates[row] = std::move(out.candidates);
    }
};

}  // namespace

LaneSums::~LaneSums() = default;

std::unique_ptr<Kernel> make(ForestSpec spec) {
    if (spec.wide) return std::make_unique<SizedKernel<Wide>>(std::move(spec));
    return std::make_unique<SizedKernel<int64_t>>(std::move(spec));
}

}  // namespace forest
}  // namespace feta

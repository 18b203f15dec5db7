// Frontier: priority queue of the undecided nodes of a search; the largest key is first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace feta {
namespace FETA_ISA {

// A node is one tree node per axis. `clear` keeps the memory, so that the next person reuses it.
class Frontier {
  public:
    explicit Frontier(int n_axes) : axes(size_t(n_axes)) {}
    bool empty() const { return heap.empty(); }
    void clear() {
        heap.clear();
        free_slots.clear();
        pool.clear();
    }
    // Return the slot of the node, which stays the same until it is popped.
    size_t push(const int32_t* ids, double key) {
        size_t slot = pool.size() / axes;
        if (free_slots.empty())
            pool.resize(pool.size() + axes);
        else {
            slot = free_slots.back();
            free_slots.pop_back();
        }
        std::copy(ids, ids + axes, pool.begin() + ptrdiff_t(slot * axes));
        heap.push_back({key, slot});
        std::push_heap(heap.begin(), heap.end());
        return slot;
    }
    size_t first_slot() const { return heap.front().slot; }
    double key() const { return heap.front().key; }
    const int32_t* first() const { return &pool[heap.front().slot * axes]; }
    void pop() {
        free_slots.push_back(heap.front().slot);
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
    }

    // Replace all keys, by slot.
    template <class KeyOf> void assign_keys(KeyOf key_of) {
        for (Entry& entry : heap) entry.key = key_of(entry.slot);
        std::make_heap(heap.begin(), heap.end());
    }

  private:
    struct Entry {
        double key;
        size_t slot;
        bool operator<(const Entry& other) const { return key < other.key; }
    };
    size_t axes;
    std::vector<Entry> heap;
    std::vector<size_t> free_slots;
    std::vector<int32_t> pool;
};

}  // namespace FETA_ISA
}  // namespace feta

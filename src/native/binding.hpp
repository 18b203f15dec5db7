// Binding: arrays between Python and C++. An array of another shape, or with NaN, is a ValueError.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace feta {
namespace binding {

namespace nb = nanobind;

template <class T> using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
using Doubles = Array<double>;
using Integers = Array<int32_t>;
using Flags = Array<uint8_t>;
using Counts = Array<uint64_t>;

template <class T> std::vector<T> to_vector(const Array<T>& array) {
    return {array.data(), array.data() + array.size()};
}

inline std::string text_of(const std::vector<size_t>& shape) {
    std::string text = "(";
    for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
    return text + ")";
}

template <class T> std::vector<size_t> shape_of(const Array<T>& array) {
    std::vector<size_t> shape;
    for (size_t d = 0; d < array.ndim(); ++d) shape.push_back(array.shape(d));
    return shape;
}

template <class T>
void check_shape(const char* name, const Array<T>& array, const std::vector<size_t>& expected) {
    if (shape_of(array) != expected)
        throw std::invalid_argument(std::string("invalid shape of ") + name + ": got " +
                                    text_of(shape_of(array)) + "; expected " + text_of(expected));
}

inline void check_no_nan(const char* name, const Doubles& array) {
    for (size_t i = 0; i < array.size(); ++i)
        if (std::isnan(array.data()[i]))
            throw std::invalid_argument(std::string("invalid ") + name +
                                        ": got NaN; expected numbers");
}

inline void check_finite(const char* name, const Doubles& array) {
    for (size_t i = 0; i < array.size(); ++i)
        if (!std::isfinite(array.data()[i]))
            throw std::invalid_argument(std::string("invalid ") + name +
                                        ": got NaN or infinity; expected finite numbers");
}

// Return a finite array of this shape as a vector.
inline std::vector<double> finite(const char* name, const Doubles& array,
                                  const std::vector<size_t>& shape) {
    check_shape(name, array, shape);
    check_finite(name, array);
    return to_vector(array);
}

inline void check(bool valid, const char* message) {
    if (!valid) throw std::invalid_argument(message);
}

// Move a vector into a numpy array; it has one dimension if `columns` is 0.
template <class T> nb::object array_of(std::vector<T>&& values, size_t rows, size_t columns = 0) {
    auto* storage = new std::vector<T>(std::move(values));
    nb::capsule owner(storage,
                      [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    if (columns == 0) return nb::cast(nb::ndarray<nb::numpy, T>(storage->data(), {rows}, owner));
    return nb::cast(nb::ndarray<nb::numpy, T>(storage->data(), {rows, columns}, owner));
}

// Return classes as booleans.
inline nb::object booleans_of(const std::vector<int32_t>& classes) {
    auto* favorable = new bool[classes.size()];
    nb::capsule owner(favorable,
                      [](void* pointer) noexcept { delete[] static_cast<bool*>(pointer); });
    std::copy(classes.begin(), classes.end(), favorable);
    return nb::cast(nb::ndarray<nb::numpy, bool>(favorable, {classes.size()}, owner));
}

// Return the ids of each person who has some.
inline nb::dict by_row(std::vector<std::vector<uint64_t>>& ids) {
    nb::dict rows;
    for (size_t row = 0; row < ids.size(); ++row)
        if (!ids[row].empty()) {
            const size_t size = ids[row].size();
            rows[nb::int_(row)] = array_of(std::move(ids[row]), size);
        }
    return rows;
}

}  // namespace binding
}  // namespace feta

// The types of an option's variable: parsing, range checks, and text form.
//
// std::string, bool, int32_t, int64_t, uint64_t, double, absl::Duration (30s, 1m30s), and of each of them
//   std::optional  set only if the option is given
//   std::vector    all uses of the option, in order
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace longshort {

// Parses all of `text`. Errors: INVALID_ARGUMENT with the rule ("must be a whole number"); `value` may then have
// changed.
absl::Status ReadOptionValue(const std::string& text, std::string* value);
absl::Status ReadOptionValue(const std::string& text, bool* value);
absl::Status ReadOptionValue(const std::string& text, int32_t* value);
absl::Status ReadOptionValue(const std::string& text, int64_t* value);
absl::Status ReadOptionValue(const std::string& text, uint64_t* value);
absl::Status ReadOptionValue(const std::string& text, double* value);
absl::Status ReadOptionValue(const std::string& text, absl::Duration* value);

template <typename T>
absl::Status ReadOptionValue(const std::string& text, std::optional<T>* value) {
  return ReadOptionValue(text, &value->emplace());
}

template <typename T>
absl::Status ReadOptionValue(const std::string& text, std::vector<T>* value) {
  return ReadOptionValue(text, &value->emplace_back());
}

// A value in the form of an argument; empty if there is none. A switch (bool) shows no default.
std::string OptionValueText(const std::string& value);
std::string OptionValueText(int32_t value);
std::string OptionValueText(int64_t value);
std::string OptionValueText(uint64_t value);
std::string OptionValueText(double value);
std::string OptionValueText(absl::Duration value);

template <typename T>
std::string OptionValueText(const std::optional<T>& value) {
  return value.has_value() ? OptionValueText(*value) : "";
}

template <typename T>
std::string OptionValueText(const std::vector<T>& /*value*/) {
  return "";
}

// The range of a number or a duration, including both ends.
template <typename T>
struct OptionRange {
  T low;
  T high;
  // Whether 0, which is less than `low`, is allowed too. It disables a feature.
  bool or_zero = false;

  // False for NaN.
  bool Holds(T value) const { return (value >= low && value <= high) || (or_zero && value == T()); }

  // Completes "it must be ...".
  std::string Rule() const {
    return absl::StrCat(or_zero ? "0 or " : "", "in [", OptionValueText(low), ", ", OptionValueText(high), "]");
  }
  // For --help: "1 to 1024".
  std::string Text() const {
    return absl::StrCat(or_zero ? "0, or " : "", OptionValueText(low), " to ", OptionValueText(high));
  }
  // Errors: INVALID_ARGUMENT with Rule().
  absl::Status Check(T value) const {
    return Holds(value) ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("must be ", Rule()));
  }
};

// The number of an option's variable: the variable itself, or the value in its optional.
template <typename T>
struct OptionNumber {
  using Type = T;
  static T Of(const T& value) { return value; }
};
template <typename T>
struct OptionNumber<std::optional<T>> {
  using Type = T;
  static T Of(const std::optional<T>& value) { return *value; }
};

// The value that means "no limit": the largest value of the type.
template <typename T>
constexpr T NoLimit() {
  if constexpr (std::is_same_v<T, absl::Duration>) {
    return absl::InfiniteDuration();
  } else {
    return std::numeric_limits<T>::max();
  }
}

}  // namespace longshort

// The types that an option's variable may have: how its value is read, and how it is shown as a default.
//
// std::string, bool, int32_t, int64_t, uint64_t, double, absl::Duration (30s, 1m30s), and of each of them
//   std::optional  set only if the option is given,
//   std::vector    every use of the option, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longshort {

// Reads the whole of `text`. Errors: INVALID_ARGUMENT saying what it must be ("must be a whole number"); `value` may
// have changed then.
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

// How --help shows a default: as it could be given; empty for none. A switch (bool) shows no default.
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

}  // namespace longshort

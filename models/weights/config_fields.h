// Tables of the fields of a config.json: the name of each, the member of the struct Config that keeps it, and its
// range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"

namespace longshort {

template <typename Config>
struct IntegerField {
  using Value = int64_t;
  std::string_view name;
  int64_t Config::*member;
  int64_t least;
  int64_t most;
};

template <typename Config>
struct BooleanField {
  using Value = bool;
  std::string_view name;
  bool Config::*member;
};

// A number above 0 and at most 1.
template <typename Config>
struct EpsilonField {
  using Value = double;
  std::string_view name;
  double Config::*member;
};

// `name` stands for the file in errors.
inline absl::Status CheckRange(std::string_view name, std::string_view field, int64_t value, int64_t least,
                               int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s is %d, it must lie in %d..%d", name, field, value, least, most));
}

template <typename Table, typename Config>
absl::Status CheckRanges(const Table& table, const Config& config, std::string_view name) {
  for (const IntegerField<Config>& field : table) {
    LS_RETURN_IF_ERROR(CheckRange(name, field.name, config.*field.member, field.least, field.most));
  }
  return absl::OkStatus();
}

template <typename Table>
void AppendNames(const Table& table, std::vector<std::string_view>& names) {
  for (const auto& field : table) names.push_back(field.name);
}

// Reads all fields of a table; each must be there.
template <typename Table, typename Config>
absl::Status ReadFields(const JsonFields& fields, const Table& table, Config& config) {
  for (const auto& field : table) {
    using Value = typename Table::value_type::Value;
    if constexpr (std::is_same_v<Value, int64_t>) {
      LS_ASSIGN_OR_RETURN(config.*field.member, fields.Integer(field.name));
    } else if constexpr (std::is_same_v<Value, bool>) {
      LS_ASSIGN_OR_RETURN(config.*field.member, fields.Boolean(field.name));
    } else {
      LS_ASSIGN_OR_RETURN(config.*field.member, fields.Number(field.name));
    }
  }
  return absl::OkStatus();
}

template <typename Table, typename Config>
void WriteFields(const Config& config, const Table& table, nlohmann::ordered_json& document) {
  for (const auto& field : table) document[std::string(field.name)] = config.*field.member;
}

}  // namespace longshort

// Fields of a config.json that are read, checked and written alike: a table of them, and what is done with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"

namespace longshort {

template <typename Config>
struct ConfigField {
  std::string_view name;
  std::variant<int64_t Config::*, bool Config::*, double Config::*> member;
  // Of an integer. Other numbers are above 0 and at most 1.
  int64_t least = 0;
  int64_t most = 0;
};

// Errors: INVALID_ARGUMENT naming the file, the field, its value and the range.
inline absl::Status CheckRange(std::string_view file, std::string_view field, int64_t value, int64_t least,
                               int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s is %d, it must lie in %d..%d", file, field, value, least, most));
}

// Table, here and below: a range of ConfigField<Config>. Errors: as CheckRange.
template <typename Table, typename Config>
absl::Status CheckRanges(const Table& table, const Config& config, std::string_view file) {
  for (const ConfigField<Config>& field : table) {
    if (const auto* integer = std::get_if<int64_t Config::*>(&field.member); integer != nullptr) {
      LS_RETURN_IF_ERROR(CheckRange(file, field.name, config.**integer, field.least, field.most));
    } else if (const auto* number = std::get_if<double Config::*>(&field.member); number != nullptr) {
      const double value = config.**number;
      if (value > 0.0 && value <= 1.0) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s is %g, it must be above 0 and at most 1", file, field.name, value));
    }
  }
  return absl::OkStatus();
}

template <typename Table>
void AddNames(const Table& table, std::vector<std::string_view>& names) {
  for (const auto& field : table) names.push_back(field.name);
}

// Errors: those of JsonFields.
template <typename Table, typename Config>
absl::Status ReadFields(const JsonFields& fields, const Table& table, Config& config) {
  for (const ConfigField<Config>& field : table) {
    if (const auto* integer = std::get_if<int64_t Config::*>(&field.member); integer != nullptr) {
      LS_ASSIGN_OR_RETURN(config.**integer, fields.Integer(field.name));
    } else if (const auto* number = std::get_if<double Config::*>(&field.member); number != nullptr) {
      LS_ASSIGN_OR_RETURN(config.**number, fields.Number(field.name));
    } else {
      LS_ASSIGN_OR_RETURN(config.*std::get<bool Config::*>(field.member), fields.Boolean(field.name));
    }
  }
  return absl::OkStatus();
}

template <typename Table, typename Config>
void WriteFields(const Table& table, const Config& config, nlohmann::ordered_json& document) {
  for (const ConfigField<Config>& field : table) {
    std::visit([&](auto member) { document[std::string(field.name)] = config.*member; }, field.member);
  }
}

}  // namespace longshort

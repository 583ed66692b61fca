// Tables of the fields of a config.json, and the functions that read, check and write fields with such a table. The
// docs use the same tables: each architecture lists all of its fields as FieldDescriptions, and rejects others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/text.h"

namespace longshort::models {

// A field in docs/config.md: its values as text, and its meaning.
struct FieldDescription {
  std::string_view name;
  std::string values;
  std::string_view help;
};

template <typename Config>
struct ConfigField {
  std::string_view name;
  std::variant<int64_t Config::*, bool Config::*, double Config::*> member;
  std::string_view help;  // meaning, for the docs
  // The range of an integer. Other numbers are greater than 0 and at most 1.
  int64_t min = 0;
  int64_t max = 0;
};

// Errors: INVALID_ARGUMENT naming the file, the field, its value and the range.
absl::Status CheckRange(std::string_view file, std::string_view field, int64_t value, int64_t min, int64_t max);

// Table, here and below, is a range of ConfigField<Config>. Errors: those of CheckRange.
template <typename Table, typename Config>
absl::Status CheckRanges(const Table& table, const Config& config, std::string_view file) {
  for (const ConfigField<Config>& field : table) {
    if (const auto* integer = std::get_if<int64_t Config::*>(&field.member); integer != nullptr) {
      LS_RETURN_IF_ERROR(CheckRange(file, field.name, config.**integer, field.min, field.max));
    } else if (const auto* number = std::get_if<double Config::*>(&field.member); number != nullptr) {
      const double value = config.**number;
      if (value > 0.0 && value <= 1.0) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s is %s; it must be above 0 and at most 1", file, field.name, NumberText(value)));
    }
  }
  return absl::OkStatus();
}

std::string RangeText(int64_t min, int64_t max);

template <typename Table>
void AddDescriptions(const Table& table, std::vector<FieldDescription>& descriptions) {
  for (const auto& field : table) {
    const std::string values = field.member.index() == 0   ? RangeText(field.min, field.max)
                               : field.member.index() == 1 ? "true, false"
                                                           : "above 0, at most 1";
    descriptions.push_back({field.name, values, field.help});
  }
}

// The words in quotation marks.
std::string QuotedWords(absl::Span<const std::string_view> words);

inline FieldDescription DescribeChoice(std::string_view name, absl::Span<const std::string_view> choices,
                                       std::string_view help) {
  return {name, QuotedWords(choices), help};
}

std::vector<std::string_view> NamesOf(const std::vector<FieldDescription>& descriptions);

enum class Presence { kRequired, kOptional };

// An optional field that is absent keeps its value. Errors: those of JsonView.
template <typename Table, typename Config>
absl::Status ReadFields(const JsonView& fields, const Table& table, Config& config,
                        Presence presence = Presence::kRequired) {
  for (const ConfigField<Config>& field : table) {
    if (presence == Presence::kOptional && !fields.Has(field.name)) continue;
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

// Sets a field of `document`.
void SetField(nlohmann::ordered_json& document, std::string_view name, std::variant<int64_t, bool, double> value);

template <typename Table, typename Config>
void WriteFields(const Table& table, const Config& config, nlohmann::ordered_json& document) {
  for (const ConfigField<Config>& field : table) {
    std::visit([&](auto member) { SetField(document, field.name, config.*member); }, field.member);
  }
}

// Writes the fields whose values are not those of a Config without any.
template <typename Table, typename Config>
void WriteOptionalFields(const Table& table, const Config& config, nlohmann::ordered_json& document) {
  for (const ConfigField<Config>& field : table) {
    std::visit(
        [&](auto member) {
          if (config.*member != Config().*member) SetField(document, field.name, config.*member);
        },
        field.member);
  }
}

}  // namespace longshort::models

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/train/labelled_texts.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr char kSecondText[] = "second_text";

// Reads the members `wanted` of an object. The others are skipped, whatever they hold: Python also writes NaN.
class MembersReader final : public JsonBuilder {
 public:
  MembersReader(std::string_view line, const std::string& place, std::vector<std::string> wanted, MemoryMeter& meter)
      : JsonBuilder(line, place, {}, meter), wanted_(std::move(wanted)) {}

 protected:
  absl::Status ReadMember(const std::string& key, nlohmann::json& value) override {
    if (std::find(wanted_.begin(), wanted_.end(), key) != wanted_.end()) return ReadValue(value);
    if (NextIs('[') || NextIs('{') || NextIs('"')) return SkipNested();
    for (const char* word : {"null", "true", "false", "NaN", "Infinity", "-Infinity"}) {
      if (TakeWord(word)) return absl::OkStatus();
    }
    std::string number;  // of any size
    return ReadNumber("a value", number);
  }

 private:
  const std::vector<std::string> wanted_;
};

absl::Status Wrong(const std::string& field, const nlohmann::json& value, const std::string& wanted) {
  const std::string shown = value.is_string() ? QuotedLabel(value.get<std::string>()) : ShownLabel(DumpJson(value));
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", shown, "; it must be ", wanted));
}

// A string, an integer or a boolean as text.
std::optional<std::string> LabelOf(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

absl::StatusOr<std::vector<std::string>> LabelsOf(const nlohmann::json& value, const TextFormat& format) {
  const auto wrong = [&](const std::string& wanted) { return Wrong(format.label_column, value, wanted); };
  if (format.problem != ProblemType::kMultiLabel) {
    if (const std::optional<std::string> label = LabelOf(value)) return std::vector{*label};
    if (format.problem == ProblemType::kSingleLabel) {
      return wrong(
          "a string, an integer, true or false; --problem=multi-label trains on lists of labels, and "
          "--problem=regression on numbers");
    }
    if (value.is_number()) return std::vector{value.dump()};  // TargetsOf checks strings
    return wrong("a number, because the problem is regression");
  }
  constexpr char kList[] = "a list of strings, integers or booleans such as [\"a\", \"b\"], or [] for no label";
  if (!value.is_array()) return wrong(kList);
  std::vector<std::string> labels;
  for (const nlohmann::json& one : value) {
    const std::optional<std::string> label = LabelOf(one);
    if (!label) return wrong(kList);
    labels.push_back(*label);
  }
  return labels;
}

absl::StatusOr<LabelledExample> ReadExample(const nlohmann::json& members, const TextFormat& format,
                                            const std::string& place) {
  for (const auto& [field, option] :
       {std::pair(format.text_column, "--text-column"), {format.label_column, "--label-column"}}) {
    if (!members.contains(field)) {
      return absl::InvalidArgumentError(absl::StrCat("no field '", field, "'; name the field with ", option));
    }
  }
  if (format.documents == 2 && !members.contains(kSecondText)) {
    return absl::InvalidArgumentError("no field 'second_text', but the model reads two documents");
  }
  if (format.documents == 1 && members.contains(kSecondText)) {
    return absl::InvalidArgumentError(
        "the field 'second_text' is for a model of two documents, which needs --config or --from; rename the field to "
        "train without it");
  }
  LabelledExample example{.labels = {}, .place = place, .content = {}};
  LS_ASSIGN_OR_RETURN(example.labels, LabelsOf(members.at(format.label_column), format));
  for (const std::string& field : {format.text_column, std::string(kSecondText)}) {
    if (std::ssize(example.content) == format.documents) break;
    const nlohmann::json& text = members.at(field);
    if (!text.is_string()) return Wrong(field, text, "a string");
    example.content.push_back(text.get<std::string>());
  }
  return example;
}

// Removes the first line from `text`. A carriage return alone ends a line, too, as in files of old Macs: within JSON's
// strings it is escaped.
std::string_view TakeObjectLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  text.remove_prefix(line.size());
  text.remove_prefix(std::min<size_t>(text.size(), text.starts_with("\r\n") ? 2 : 1));
  return line;
}

}  // namespace

absl::StatusOr<std::vector<LabelledExample>> ParseLabelledLines(std::string_view lines, const TextFormat& format,
                                                                const std::string& name) {
  std::vector<LabelledExample> examples;
  for (int64_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = TakeObjectLine(lines);
    const std::string content(absl::StripAsciiWhitespace({line.data(), line.size()}));
    if (content.empty()) continue;
    const std::string place = absl::StrCat(name, ":", number);
    if (content.front() != '{') {
      return absl::InvalidArgumentError(absl::StrCat(place, ": is ", QuotedLabel(content),
                                                     "; a line must be an object like {\"label\": \"pos\", \"text\": "
                                                     "\"...\"}, and the name of a table must end with .csv or .tsv"));
    }
    MemoryMeter none;
    nlohmann::json members;
    LS_RETURN_IF_ERROR(
        MembersReader(line, place, {format.text_column, format.label_column, kSecondText}, none).Build(members));
    absl::StatusOr<LabelledExample> example = ReadExample(members, format, place);
    if (!example.ok()) return Named(place, example.status());
    examples.push_back(*std::move(example));
  }
  return examples;
}

}  // namespace longshort::models

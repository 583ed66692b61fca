#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/text_lines.h"
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
    if (NextIs('[') || NextIs('{')) return SkipNested();
    for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
      if (TakeWord(word)) return absl::OkStatus();
    }
    nlohmann::json skipped;
    return ReadValue(skipped);
  }

 private:
  const std::vector<std::string> wanted_;
};

class JsonRow final {
 public:
  JsonRow(const nlohmann::json& members, const TextFormat& format, const std::string& place)
      : members_(members), format_(format), place_(place) {}

  absl::StatusOr<LabelledExample> Read() const {
    for (const auto& [field, option] :
         {std::pair(format_.text_column, "--text-column"), {format_.label_column, "--label-column"}}) {
      if (!members_.contains(field)) {
        return Wrong(absl::StrCat("no field '", field, "'; name the field with ", option));
      }
    }
    LabelledExample example{.labels = {}, .place = place_, .content = {}};
    LS_ASSIGN_OR_RETURN(example.labels, Labels());
    LS_ASSIGN_OR_RETURN(example.content.emplace_back(), Text(format_.text_column));
    if (format_.documents == 2) {
      if (!members_.contains(kSecondText)) return Wrong("no field 'second_text', but the model reads two documents");
      LS_ASSIGN_OR_RETURN(example.content.emplace_back(), Text(kSecondText));
    } else if (members_.contains(kSecondText)) {
      return Wrong(
          "the field 'second_text' is for a model of two documents, which needs --config or --from; rename the field "
          "to train without it");
    }
    return example;
  }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(place_, ": ", what));
  }
  absl::Status WrongLabel(const nlohmann::json& label, const std::string& wanted) const {
    return Wrong(absl::StrCat(format_.label_column, " is ", QuoteForMessage(DumpJson(label)), "; it must be ", wanted));
  }

  absl::StatusOr<std::string> Text(const std::string& field) const {
    const nlohmann::json& value = members_.at(field);
    if (value.is_string()) return value.get<std::string>();
    return Wrong(absl::StrCat(field, " is ", QuoteForMessage(DumpJson(value)), "; it must be a string"));
  }

  static std::optional<std::string> Label(const nlohmann::json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_integer() || value.is_boolean()) return value.dump();
    return std::nullopt;
  }

  absl::StatusOr<std::vector<std::string>> Labels() const {
    const nlohmann::json& value = members_.at(format_.label_column);
    const std::optional<std::string> label = Label(value);
    switch (format_.problem) {
      case ProblemType::kSingleLabel:
        if (label) return std::vector<std::string>{*label};
        return WrongLabel(value,
                          "a string, an integer, true or false; --problem=multi-label trains on lists of labels, and "
                          "--problem=regression on numbers");
      case ProblemType::kRegression:
        if (value.is_number()) return std::vector<std::string>{value.dump()};
        if (label) return std::vector<std::string>{*label};  // TargetsOf checks that it is a number
        return WrongLabel(value, "a number, because the problem is regression");
      case ProblemType::kMultiLabel:
        break;
    }
    constexpr char kList[] = "a list of strings, integers or booleans such as [\"a\", \"b\"], or [] for no label";
    if (!value.is_array()) return WrongLabel(value, kList);
    std::vector<std::string> labels;
    for (const nlohmann::json& one : value) {
      const std::optional<std::string> read = Label(one);
      if (!read) return WrongLabel(value, kList);
      labels.push_back(*read);
    }
    return labels;
  }

  const nlohmann::json& members_;
  const TextFormat& format_;
  const std::string& place_;
};

}  // namespace

absl::StatusOr<std::vector<LabelledExample>> ParseLabelledLines(std::string_view lines, const TextFormat& format,
                                                                const std::string& name) {
  std::vector<LabelledExample> examples;
  for (int64_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = TakeLine(lines);
    if (line.empty()) continue;
    const std::string place = absl::StrCat(name, ":", number);
    MemoryMeter none;
    nlohmann::json members;
    LS_RETURN_IF_ERROR(
        MembersReader(line, place, {format.text_column, format.label_column, kSecondText}, none).Build(members));
    LS_ASSIGN_OR_RETURN(examples.emplace_back(), JsonRow(members, format, place).Read());
  }
  return examples;
}

}  // namespace longshort::models

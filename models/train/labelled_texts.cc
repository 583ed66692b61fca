#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/train/labelled_texts.h"

namespace longshort {
namespace {

absl::StatusOr<LabelledText> ParseLine(std::string_view line, int64_t documents, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Parse(line, name));
  constexpr std::string_view kFields[] = {"label", "text", "second_text"};
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(absl::MakeConstSpan(kFields).first(documents + 1)));
  LabelledText text;
  LS_ASSIGN_OR_RETURN(text.label, fields.Text("label"));
  if (text.label.empty() || text.label.find('\n') != std::string::npos) {
    return fields.OutOfRange("label", "one line that is not empty");
  }
  for (int64_t document = 0; document < documents; ++document) {
    LS_ASSIGN_OR_RETURN(std::string content, fields.Text(kFields[document + 1]));
    text.documents.push_back(std::move(content));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<LabelledText>> ParseLabelledTexts(std::string_view lines, int64_t documents,
                                                             const std::string& name) {
  std::vector<LabelledText> texts;
  for (int64_t number = 1; !lines.empty(); ++number) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    LS_ASSIGN_OR_RETURN(LabelledText text, ParseLine(line, documents, absl::StrCat(name, ":", number)));
    text.line = number;
    texts.push_back(std::move(text));
  }
  if (texts.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": there is no labelled text in it"));
  return texts;
}

std::vector<std::string> LabelsOf(absl::Span<const LabelledText> texts) {
  std::set<std::string> labels;
  for (const LabelledText& text : texts) labels.insert(text.label);
  return {labels.begin(), labels.end()};
}

}  // namespace longshort

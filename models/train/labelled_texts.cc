#include "models/train/labelled_texts.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace longshort::models {
namespace {

absl::StatusOr<std::vector<LabelledExample>> ReadFolders(const std::string& path, const TextFormat& format) {
  LS_ASSIGN_OR_RETURN(std::vector<LabelledExample> examples, ReadClassFolders(path));
  for (LabelledExample& example : examples) {
    LS_ASSIGN_OR_RETURN(example.content.front(),
                        ToUtf8(std::move(example.content.front()), format.encoding, example.place));
  }
  return examples;
}

absl::StatusOr<std::vector<LabelledExample>> ReadFile(const std::string& path, const TextFormat& format) {
  LS_ASSIGN_OR_RETURN(std::string bytes, ReadTextFile(path, /*limit_bytes=*/size_t{1} << 32));
  LS_ASSIGN_OR_RETURN(const std::string text, ToUtf8(std::move(bytes), format.encoding, path));
  const std::string_view content = WithoutByteOrderMark(text);
  if (absl::EndsWithIgnoreCase(path, ".csv")) return ParseLabelledTable(content, ',', format, path);
  if (absl::EndsWithIgnoreCase(path, ".tsv")) return ParseLabelledTable(content, '\t', format, path);
  return ParseLabelledLines(content, format, path);
}

}  // namespace

absl::StatusOr<std::vector<LabelledExample>> ReadLabelledTexts(const std::string& path, const TextFormat& format) {
  std::error_code unknown;
  LS_ASSIGN_OR_RETURN(std::vector<LabelledExample> examples, std::filesystem::is_directory(path, unknown)
                                                                 ? ReadFolders(path, format)
                                                                 : ReadFile(path, format));
  for (LabelledExample& example : examples) {
    for (const std::string& label : example.labels) {
      if (label.empty() || label.find('\n') != std::string::npos) {
        return absl::InvalidArgumentError(
            absl::StrCat(example.place, ": label is ", QuotedLabel(label), "; it must be one line that is not empty"));
      }
    }
    std::sort(example.labels.begin(), example.labels.end());
    example.labels.erase(std::unique(example.labels.begin(), example.labels.end()), example.labels.end());
    if (example.content.size() != static_cast<size_t>(format.documents)) {
      return absl::InvalidArgumentError(
          absl::StrCat(example.place, ": the model reads two documents, which only JSON Lines have"));
    }
  }
  if (examples.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": contains no labelled text"));
  return examples;
}

}  // namespace longshort::models

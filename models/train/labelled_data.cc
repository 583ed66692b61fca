#include "models/train/labelled_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

constexpr size_t kFileLimitBytes = size_t{1} << 26;

// The sorted paths of the folders, or of the regular files, in `directory`.
absl::StatusOr<std::vector<std::filesystem::path>> Entries(const std::filesystem::path& directory, bool folders) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;  // for example of a link to itself, which is neither
    if (entry->path().filename().string().starts_with('.')) continue;  // .DS_Store, .ipynb_checkpoints
    if (folders ? entry->is_directory(unknown) : entry->is_regular_file(unknown)) paths.push_back(entry->path());
  }
  if (error) return absl::NotFoundError(absl::StrCat(directory.string(), ": cannot be listed: ", error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Whether the byte begins a character in UTF-8.
bool Begins(char byte) { return (byte & 0xC0) != 0x80; }

}  // namespace

absl::Status Named(const std::string& place, const absl::Status& error) {
  return absl::Status(error.code(), absl::StrCat(place, ": ", error.message()));
}

absl::Status CheckLabelCount(absl::Span<const std::string> labels, int64_t classes, const std::string& name) {
  if (static_cast<int64_t>(labels.size()) != classes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", labels.size(), " labels, the model has ", classes, " classes"));
  }
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> read,
                      ParseLabels(LabelsText(labels), classes, absl::StrCat(name, ": its labels as labels.txt")));
  for (size_t i = 0; i < read.size(); ++i) {
    if (read[i] != labels[i]) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": label ", QuotedLabel(labels[i]),
                                                     " would be read from labels.txt as ", QuotedLabel(read[i])));
    }
  }
  return absl::OkStatus();
}

std::string LabelsText(absl::Span<const std::string> labels) { return absl::StrCat(absl::StrJoin(labels, "\n"), "\n"); }

absl::StatusOr<std::vector<Target>> TargetsOf(absl::Span<const LabelledExample> examples,
                                              absl::Span<const std::string> labels, ProblemType problem) {
  std::vector<Target> targets;
  targets.reserve(examples.size());
  for (const LabelledExample& example : examples) {
    Target& target = targets.emplace_back();
    if (problem == ProblemType::kRegression) {
      const std::string& number = example.labels.front();
      if (!absl::SimpleAtof(number, &target.number) || !std::isfinite(target.number)) {
        return absl::InvalidArgumentError(absl::StrCat(example.place, ": label is ", QuotedLabel(number),
                                                       "; a regression needs a number such as 3.5"));
      }
      continue;
    }
    for (const std::string& label : example.labels) {
      const auto found = std::lower_bound(labels.begin(), labels.end(), label);
      if (found == labels.end() || *found != label) {
        return absl::InvalidArgumentError(
            absl::StrCat(example.place, ": label ", QuotedLabel(label), " is not in the training data"));
      }
      target.classes.push_back(found - labels.begin());
    }
  }
  return targets;
}

NumberScale ScaleOf(absl::Span<const Target> targets) {
  double sum = 0, squares = 0;
  for (const Target& target : targets) sum += target.number;
  const double mean = sum / static_cast<double>(targets.size());
  for (const Target& target : targets) squares += (target.number - mean) * (target.number - mean);
  return {.mean = mean, .deviation = std::sqrt(squares / static_cast<double>(targets.size()))};
}

absl::StatusOr<std::vector<LabelledExample>> ReadClassFolders(const std::string& directory) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> folders, Entries(directory, /*folders=*/true));
  std::vector<LabelledExample> examples;
  for (const std::filesystem::path& folder : folders) {
    LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> nested, Entries(folder, /*folders=*/true));
    if (!nested.empty()) {
      constexpr char kIsNested[] = " is a folder in the folder of a class; give the folder that has the classes";
      return absl::InvalidArgumentError(absl::StrCat(nested.front().string(), kIsNested));
    }
    LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> files, Entries(folder, /*folders=*/false));
    for (const std::filesystem::path& file : files) {
      LS_ASSIGN_OR_RETURN(std::string bytes, ReadTextFile(file.string(), kFileLimitBytes));
      examples.push_back({.labels = {folder.filename().string()}, .place = file.string(), .content = {}});
      examples.back().content.push_back(std::move(bytes));
    }
  }
  if (examples.empty()) return absl::InvalidArgumentError(absl::StrCat(directory, ": its folders contain no file"));
  return examples;
}

std::string_view Beginning(std::string_view text, size_t bytes) {
  while (bytes > 0 && bytes < text.size() && !Begins(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

std::string ShownLabel(const std::string& label) {
  const std::string shown(Beginning(label, 60));
  return absl::StrCat(absl::Utf8SafeCHexEscape(shown), shown.size() < label.size() ? "..." : "");
}

std::string QuotedLabel(const std::string& label) { return absl::StrCat("'", ShownLabel(label), "'"); }

std::string QuotedLabels(absl::Span<const std::string> labels) {
  std::vector<std::string> quoted;
  for (const std::string& label : labels) quoted.push_back(QuotedLabel(label));
  return quoted.empty() ? "no label" : Listed(std::move(quoted));
}

std::string Listed(std::vector<std::string> parts) {
  constexpr size_t kMost = 20;
  const size_t more = parts.size() - std::min(parts.size(), kMost);
  parts.resize(parts.size() - more);
  return absl::StrCat(absl::StrJoin(parts, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace longshort::models

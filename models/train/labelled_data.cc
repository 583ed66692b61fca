#include "models/train/labelled_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/number_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "models/train/shown_labels.h"
#include "models/weights/model_directory.h"
#include "re2/re2.h"

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

std::vector<std::string> CharactersOf(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const std::optional<Utf8Character> first = FirstUtf8Character(text);
    characters.emplace_back(text.substr(0, first.has_value() ? first->bytes : 1));
    text.remove_prefix(characters.back().size());
  }
  return characters;
}

// For each character of the labels the first one that differs from it only by case, as RE2 knows it of all scripts.
std::map<std::string, std::string> CaseFoldsOf(absl::Span<const std::string> labels) {
  std::map<std::string, std::string> folds;
  for (const std::string& label : labels) {
    for (const std::string& character : CharactersOf(label)) folds[character] = character;
  }
  std::string all;
  for (const auto& [character, first] : folds) all += character;
  for (auto& [character, first] : folds) {
    if (IsUtf8(character)) RE2::PartialMatch(all, absl::StrCat("(?i)(", RE2::QuoteMeta(character), ")"), &first);
  }
  return folds;
}

// What a label is without space around it, with single spaces, in one case, and as the shortest form of a number.
std::string Plain(const std::string& label, const std::map<std::string, std::string>& folds) {
  std::string plain;
  for (const std::string& character : CharactersOf(label)) plain += folds.at(character);
  plain = absl::StrReplaceAll(plain, {{"\xc2\xa0", " "}});  // no-break spaces
  absl::RemoveExtraAsciiWhitespace(&plain);
  double number = 0;
  constexpr double kExact = 0x1p53;  // larger numbers that differ may be equal as double
  return absl::SimpleAtod(plain, &number) && std::abs(number) < kExact ? NumberText(number) : plain;
}

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

absl::Status CheckLabelsDiffer(absl::Span<const std::string> labels, ProblemType problem, const std::string& name) {
  if (labels.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": no label is left"));
  if (labels.size() < 2 && problem == ProblemType::kSingleLabel) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": all examples have the label ", QuotedLabels(labels),
                                                   "; a classifier needs at least 2 labels"));
  }
  std::map<std::string, std::vector<std::string>> groups;
  const std::map<std::string, std::string> folds = CaseFoldsOf(labels);
  for (const std::string& label : labels) groups[Plain(label, folds)].push_back(label);
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  if (groups.empty()) return absl::OkStatus();
  constexpr int64_t kMostGroups = 10;
  std::vector<std::string> shown;
  for (const auto& [plain, alike] : groups) {
    if (std::ssize(shown) < kMostGroups) shown.push_back(QuotedLabels(alike));
  }
  if (std::ssize(groups) > kMostGroups) shown.push_back(absl::StrCat(groups.size() - kMostGroups, " more groups"));
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": labels differ only by space, case or the form of a number: ", absl::StrJoin(shown, "; "),
                   "; write them in one form, or rename those that mean different classes"));
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

}  // namespace longshort::models

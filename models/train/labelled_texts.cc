#include "models/train/labelled_texts.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/strict_json.h"

namespace longshort::models {
namespace {

constexpr size_t kFileLimitBytes = size_t{1} << 32;

// A row of a table: fields may be quoted, and then contain separators, line ends, and quotes that are doubled.
// Removes the row from `text`. Errors: INVALID_ARGUMENT for a quote that is not closed.
absl::StatusOr<std::vector<std::string>> TakeRow(std::string_view& text, char separator, int64_t& line) {
  std::vector<std::string> row(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char character = text[i];
    if (character == '\n') ++line;
    if (quoted && character == '"') {
      if (i + 1 < text.size() && text[i + 1] == '"') {
        row.back().push_back('"');
        ++i;
      } else {
        quoted = false;
      }
    } else if (!quoted && character == '"' && row.back().empty()) {
      quoted = true;
    } else if (!quoted && character == separator) {
      row.emplace_back();
    } else if (!quoted && character == '\n') {
      ++i;
      break;
    } else {
      row.back().push_back(character);
    }
  }
  if (quoted) return absl::InvalidArgumentError("a quote is not closed");
  text.remove_prefix(i);
  if (row.back().ends_with('\r')) row.back().pop_back();
  return row;
}

absl::StatusOr<std::vector<LabelledText>> ParseTable(std::string_view text, char separator, const TextColumns& columns,
                                                     const std::string& path) {
  if (text.empty())
    return absl::InvalidArgumentError(absl::StrCat(path, ": is empty; it must begin with a row of names"));
  int64_t line = 1;
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> names, TakeRow(text, separator, line));
  const auto index_of = [&](const std::string& column, const std::string& option) -> absl::StatusOr<size_t> {
    const auto found = std::find(names.begin(), names.end(), column);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    return absl::InvalidArgumentError(absl::StrCat(path, ": no column '", column, "'; its first row has ",
                                                   absl::StrJoin(names, ", "), "; name one with ", option));
  };
  LS_ASSIGN_OR_RETURN(const size_t text_index, index_of(columns.text, "--text-column"));
  LS_ASSIGN_OR_RETURN(const size_t label_index, index_of(columns.label, "--label-column"));
  std::vector<LabelledText> texts;
  while (!text.empty()) {
    const int64_t start = line;
    absl::StatusOr<std::vector<std::string>> row = TakeRow(text, separator, line);
    if (row.ok() && row->size() == 1 && row->front().empty()) continue;
    if (row.ok() && row->size() != names.size()) {
      row = absl::InvalidArgumentError(absl::StrCat("has ", row->size(), " fields, the first row ", names.size()));
    }
    if (!row.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ":", start, ": ", row.status().message()));
    texts.push_back(
        {.label = (*row)[label_index], .documents = {(*row)[text_index]}, .place = absl::StrCat(path, ":", start)});
  }
  return texts;
}

absl::StatusOr<std::vector<LabelledText>> ReadFolders(const std::string& path) {
  std::vector<std::string> labels;
  LS_ASSIGN_OR_RETURN(std::vector<ImageFile> files, ReadImageFolder(path, labels));
  std::vector<LabelledText> texts;
  texts.reserve(files.size());
  for (ImageFile& file : files) {
    texts.push_back({.label = labels[file.target], .documents = {}, .place = file.path});
    texts.back().documents.push_back(std::move(file.bytes));
  }
  return texts;
}

}  // namespace

absl::StatusOr<std::vector<LabelledText>> ReadLabelledTexts(const std::string& path, const TextColumns& columns) {
  std::vector<LabelledText> texts;
  if (std::error_code unknown; std::filesystem::is_directory(path, unknown)) {
    LS_ASSIGN_OR_RETURN(texts, ReadFolders(path));
  } else {
    LS_ASSIGN_OR_RETURN(const std::string content, ReadTextFile(path, kFileLimitBytes));
    const bool is_tsv = absl::EndsWithIgnoreCase(path, ".tsv");
    if (!is_tsv && !absl::EndsWithIgnoreCase(path, ".csv")) {
      return ParseLabelledTexts(content, {.columns = columns, .only_these = false}, path);
    }
    LS_ASSIGN_OR_RETURN(texts, ParseTable(WithoutByteOrderMark(content), is_tsv ? '\t' : ',', columns, path));
  }
  LS_RETURN_IF_ERROR(CheckLabelledTexts(texts, path));
  return texts;
}

absl::StatusOr<std::vector<bool>> ChooseHeldOut(const std::vector<Example>& examples, double fraction,
                                                const std::string& name) {
  // By label and hash: the indices of equal examples.
  std::map<std::string_view, std::map<std::string, std::vector<size_t>>> classes;
  for (size_t i = 0; i < examples.size(); ++i) {
    std::string hashes;
    for (const std::string_view part : examples[i].content) {
      LS_ASSIGN_OR_RETURN(const std::string hash, Sha256Of(part));
      hashes += hash;
    }
    classes[examples[i].label][hashes].push_back(i);
  }
  std::vector<bool> is_held_out(examples.size());
  for (const auto& [label, different] : classes) {
    if (different.size() < 2) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": class ", QuoteForMessage(label),
                                                     " has only 1 distinct example; at least 2 are needed to hold "
                                                     "one out"));
    }
    const auto wanted = static_cast<size_t>(static_cast<double>(different.size()) * fraction);
    size_t left = std::clamp<size_t>(wanted, 1, different.size() - 1);
    for (const auto& [hash, indices] : different) {
      if (left == 0) break;
      for (const size_t i : indices) is_held_out[i] = true;
      --left;
    }
  }
  return is_held_out;
}

}  // namespace longshort::models

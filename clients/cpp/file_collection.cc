#include "clients/cpp/file_collection.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace longshort::client {
namespace {

namespace fs = std::filesystem;

// Beyond so many labels, Describe adds the counts up.
constexpr size_t kMaxLabels = 10;

// "*.gif", ".*.png" of a hidden file, or the whole name if it has no ending.
std::string LabelOf(const std::string& name) {
  const std::string hidden = name.front() == '.' ? "." : "";
  const fs::path rest = name.substr(hidden.size());
  const std::string ending = absl::AsciiStrToLower(rest.extension().string());
  return ending.empty() ? name : absl::StrCat(hidden, "*", ending);
}

// The largest counts first.
std::string Describe(const LeftOut& left_out) {
  std::vector<std::pair<std::string, int64_t>> sorted(left_out.begin(), left_out.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  int64_t others = 0;
  for (const auto& [label, count] : sorted) {
    if (parts.size() < kMaxLabels) {
      parts.push_back(absl::StrCat(count, " ", label));
    } else {
      others += count;
    }
  }
  if (others > 0) parts.push_back(absl::StrCat("and ", others, " others"));
  return absl::StrJoin(parts, ", ");
}

absl::Status Unreadable(const fs::path& folder, const std::error_code& error) {
  return absl::NotFoundError(absl::StrCat(folder.string(), ": ", error.message()));
}

// Adds the wanted files below a folder. `above`: the folders that lead to it, without links.
absl::Status AddFolder(const fs::path& folder, WantedFile wanted, std::vector<fs::path>& above, CollectedFiles& found) {
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  if (error) return Unreadable(folder, error);
  if (std::find(above.begin(), above.end(), place) != above.end()) {
    ++found.left_out[absl::StrCat(folder.string(), " (a link to a folder above it)")];
    return absl::OkStatus();
  }
  above.push_back(place);
  fs::directory_iterator entry(folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;  // then it is neither
    const bool is_folder = entry->is_directory(unknown);
    if (name.front() == '.') {
      ++found.left_out[is_folder ? name + "/" : LabelOf(name)];
    } else if (is_folder) {
      LS_RETURN_IF_ERROR(AddFolder(entry->path(), wanted, above, found));
    } else if (entry->is_regular_file(unknown) && wanted(entry->path().string())) {
      found.names.push_back(entry->path().string());
    } else {
      ++found.left_out[LabelOf(name)];
    }
  }
  above.pop_back();
  return error ? Unreadable(folder, error) : absl::OkStatus();
}

absl::Status AddSortedFolder(const std::string& folder, WantedFile wanted, CollectedFiles& found) {
  CollectedFiles own;
  std::vector<fs::path> above;
  LS_RETURN_IF_ERROR(AddFolder(folder, wanted, above, own));
  if (own.names.empty()) {
    const std::string not_read = Describe(own.left_out);
    return absl::NotFoundError(absl::StrCat(folder, ": the folder has no file of the right kind",
                                            not_read.empty() ? "" : "; not read: ", not_read));
  }
  std::sort(own.names.begin(), own.names.end());
  found.names.insert(found.names.end(), own.names.begin(), own.names.end());
  for (const auto& [label, count] : own.left_out) found.left_out[label] += count;
  return absl::OkStatus();
}

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

// Returns the matches, sorted. Errors: NOT_FOUND if there are none, or a folder cannot be searched.
absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t matches = {};
  const absl::Cleanup free_matches = [&] { globfree(&matches); };
  const auto end_unless_missing = [](const char* /*folder*/, int error) {
    return error == ENOENT || error == ENOTDIR ? 0 : error;
  };
  const int result = glob(pattern.c_str(), 0, end_unless_missing, &matches);
  if (result == GLOB_NOMATCH) return absl::NotFoundError(absl::StrCat(pattern, ": ", std::strerror(ENOENT)));
  if (result != 0) return absl::NotFoundError(absl::StrCat(pattern, ": a folder cannot be read"));
  return std::vector<std::string>(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
}

}  // namespace

bool IsImageName(const std::string& name) {
  constexpr std::array kExtensions = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"};
  const std::string extension = absl::AsciiStrToLower(fs::path(name).extension().string());
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

void ReportLeftOut(const LeftOut& left_out, Terminal& terminal) {
  if (!left_out.empty()) terminal.error << "longshort: not read: " << Describe(left_out) << "\n";
}

absl::StatusOr<CollectedFiles> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                            MissingFile missing) {
  CollectedFiles found;
  for (const std::string& argument : arguments) {
    std::vector<std::string> names = {argument};
    std::error_code ignored;
    if (argument != "-" && !fs::exists(argument, ignored)) {
      if (IsPattern(argument)) {
        LS_ASSIGN_OR_RETURN(names, Matches(argument));
      } else if (missing == MissingFile::kIsAnError) {
        return absl::NotFoundError(absl::StrCat(argument, ": ", std::strerror(ENOENT)));
      }
    }
    for (const std::string& name : names) {
      if (fs::is_directory(name, ignored)) {
        LS_RETURN_IF_ERROR(AddSortedFolder(name, wanted, found));
      } else {
        found.names.push_back(name);
      }
    }
  }
  return found;
}

}  // namespace longshort::client

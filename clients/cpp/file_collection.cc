#include "clients/cpp/file_collection.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace longshort::client {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) { return path.filename().string().front() == '.'; }

absl::StatusOr<std::vector<std::string>> FilesOfFolder(const std::string& folder, WantedFile wanted) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;  // then is_regular_file returns false
    if (IsHidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(ignored) && wanted(entry->path().string())) {
      files.push_back(entry->path().string());
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  if (files.empty()) return absl::NotFoundError(absl::StrCat(folder, ": the folder has no file of the right kind"));
  std::sort(files.begin(), files.end());
  return files;
}

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

// Returns the matches, sorted.
std::vector<std::string> Matches(const std::string& pattern) {
  glob_t matches = {};
  const absl::Cleanup free_matches = [&] { globfree(&matches); };
  if (glob(pattern.c_str(), 0, nullptr, &matches) != 0) return {};
  return {matches.gl_pathv, matches.gl_pathv + matches.gl_pathc};
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& name, WantedFile wanted) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return FilesOfFolder(name, wanted);
  return std::vector<std::string>{name};
}

}  // namespace

bool IsImageName(const std::string& name) {
  constexpr std::array kExtensions = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"};
  const std::string extension = absl::AsciiStrToLower(fs::path(name).extension().string());
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

absl::StatusOr<std::vector<std::string>> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                                      MissingFile missing) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::vector<std::string> names = {argument};
    std::error_code ignored;
    if (argument != "-" && !fs::exists(argument, ignored)) {
      if (IsPattern(argument)) {
        names = Matches(argument);
      } else if (missing == MissingFile::kIsAnError) {
        names.clear();
      }
      if (names.empty()) return absl::NotFoundError(absl::StrCat(argument, ": ", std::strerror(ENOENT)));
    }
    for (const std::string& name : names) {
      absl::StatusOr<std::vector<std::string>> found = FilesOf(name, wanted);
      if (!found.ok()) return found.status();
      files.insert(files.end(), found->begin(), found->end());
    }
  }
  return files;
}

}  // namespace longshort::client

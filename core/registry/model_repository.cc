#include "core/registry/model_repository.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/text/utf8_stream.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

namespace fs = std::filesystem;

// The names of the folders in `folder` that do not begin with a dot, sorted.
absl::StatusOr<std::set<std::string>> FoldersIn(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code not_a_folder;  // a broken link is none
    const std::string name = entry->path().filename().string();
    if (name.front() != '.' && entry->is_directory(not_a_folder)) names.insert(name);
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message()));
  }
  return names;
}

// Folders that are not named by a whole number from 1 on are no versions.
absl::StatusOr<std::set<int64_t>> VersionsIn(const fs::path& model_folder) {
  LS_ASSIGN_OR_RETURN(const std::set<std::string> names, FoldersIn(model_folder));
  std::set<int64_t> versions;
  for (const std::string& name : names) {
    int64_t version = 0;
    if (absl::SimpleAtoi(name, &version) && version > 0 && absl::StrCat(version) == name) versions.insert(version);
  }
  return versions;
}

std::string Signature(const fs::directory_entry& entry) {
  std::error_code unknown;
  const uintmax_t bytes = entry.is_regular_file(unknown) ? entry.file_size(unknown) : 0;
  return absl::StrCat(bytes, ":", entry.last_write_time(unknown).time_since_epoch().count());
}

bool IsUtf8(const std::string& text) {
  Utf8Stream stream;
  return stream.Append(text) + stream.Flush() == text;
}

}  // namespace

absl::StatusOr<RepositoryListing> ListRepository(const std::string& repository) {
  LS_ASSIGN_OR_RETURN(const std::set<std::string> names, FoldersIn(repository));
  RepositoryListing listing;
  for (const std::string& name : names) {
    const fs::path model_folder = fs::path(repository) / name;
    if (!IsUtf8(name)) {
      listing.skipped.push_back(absl::StrCat(model_folder.string(), ": the name is not UTF-8"));
      continue;
    }
    absl::StatusOr<std::set<int64_t>> versions = VersionsIn(model_folder);
    if (!versions.ok()) {
      listing.skipped.emplace_back(versions.status().message());
    } else if (versions->empty()) {
      listing.skipped.push_back(absl::StrCat(model_folder.string(), ": no folder named 1, 2, ..."));
    } else {
      listing.versions[name] = *std::move(versions);
    }
  }
  return listing;
}

std::string VersionDirectory(const std::string& repository, const std::string& model, int64_t version) {
  return (fs::path(repository) / model / absl::StrCat(version)).string();
}

std::string ServingFile(const std::string& repository, const std::string& model) {
  return (fs::path(repository) / model / "serving.json").string();
}

std::string FileSignature(const std::string& file) {
  std::error_code none;
  const fs::directory_entry entry(file, none);
  return entry.exists(none) ? Signature(entry) : "";
}

std::string FolderSignature(const std::string& folder) {
  std::set<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    files.insert(absl::StrCat(entry->path().filename().string(), ":", Signature(*entry)));
  }
  return absl::StrJoin(files, " ");
}

}  // namespace longshort

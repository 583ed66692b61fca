#include "core/registry/model_repository.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "models/load_options.h"

namespace longshort::core {
namespace {

namespace fs = std::filesystem;

std::string CannotRead(const fs::path& folder, const std::error_code& error) {
  return absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message());
}

struct Folders {
  std::set<std::string> names;
  std::map<std::string, std::string> unreadable;  // names, with the reason: it is unknown whether they are folders
  std::set<std::string> links_to_nothing;         // names
};

// The entries of `folder` whose names do not begin with a dot.
absl::StatusOr<Folders> FoldersIn(const fs::path& folder) {
  Folders folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.front() == '.') continue;
    std::error_code unknown;
    const fs::file_status status = entry->status(unknown);
    if (fs::is_directory(status)) {
      folders.names.insert(name);
    } else if (!fs::status_known(status)) {
      folders.unreadable[name] = CannotRead(entry->path(), unknown);
    } else if (!fs::exists(status) && fs::is_symlink(entry->symlink_status(unknown))) {
      folders.links_to_nothing.insert(name);
    }
  }
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError(CannotRead(folder, error));
  if (error) return absl::UnavailableError(CannotRead(folder, error));
  return folders;
}

// nullopt unless the name is a whole number from 1.
std::optional<int64_t> VersionNamed(const std::string& name) {
  int64_t version = 0;
  if (!absl::SimpleAtoi(name, &version) || version < 1 || absl::StrCat(version) != name) return std::nullopt;
  return version;
}

std::string LinkToNothing(const fs::path& link) { return absl::StrCat(link.string(), ": a dangling symbolic link"); }

// The versions in a model's folder. Adds dangling links to `skipped`.
// Errors: those of FoldersIn; UNAVAILABLE if one of the versions cannot be read.
absl::StatusOr<std::set<int64_t>> VersionsIn(const fs::path& model_folder, std::set<std::string>& skipped) {
  LS_ASSIGN_OR_RETURN(const Folders folders, FoldersIn(model_folder));
  for (const std::string& name : folders.links_to_nothing) {
    if (VersionNamed(name).has_value()) skipped.insert(LinkToNothing(model_folder / name));
  }
  for (const auto& [name, reason] : folders.unreadable) {
    if (VersionNamed(name).has_value()) return absl::UnavailableError(reason);
  }
  std::set<int64_t> versions;
  for (const std::string& name : folders.names) {
    if (const std::optional<int64_t> version = VersionNamed(name)) versions.insert(*version);
  }
  return versions;
}

// A folder of the file system's own, which only root can read.
constexpr std::string_view kFoundByFsck = "lost+found";

bool IsOfModel(const std::string& file_name) {
  return std::any_of(models::kModelFiles.begin(), models::kModelFiles.end(),
                     [&](std::string_view name) { return file_name.find(name) != std::string::npos; });
}

}  // namespace

std::set<int64_t> VersionPolicy::Choose(const std::set<int64_t>& versions) const {
  if (kind == Kind::kAll) return versions;
  std::set<int64_t> chosen;
  if (kind == Kind::kSpecific) {
    std::set_intersection(versions.begin(), versions.end(), specific.begin(), specific.end(),
                          std::inserter(chosen, chosen.end()));
    return chosen;
  }
  for (auto version = versions.rbegin(); version != versions.rend() && std::ssize(chosen) < latest; ++version) {
    chosen.insert(*version);
  }
  return chosen;
}

absl::StatusOr<RepositoryListing> ListRepository(const std::string& repository) {
  LS_ASSIGN_OR_RETURN(Folders folders, FoldersIn(repository));
  RepositoryListing listing;
  listing.unreadable = std::move(folders.unreadable);
  for (const std::string& name : folders.links_to_nothing) {
    listing.skipped.insert(LinkToNothing(fs::path(repository) / name));
  }
  for (const std::string& name : folders.names) {
    const fs::path model_folder = fs::path(repository) / name;
    if (!IsUtf8(name)) {
      listing.skipped.insert(absl::StrCat(model_folder.string(), ": the name is not UTF-8"));
      continue;
    }
    absl::StatusOr<std::set<int64_t>> versions = VersionsIn(model_folder, listing.skipped);
    if (absl::IsUnavailable(versions.status()) && name != kFoundByFsck) {
      listing.unreadable[name] = std::string(versions.status().message());
    } else if (!versions.ok()) {  // removed meanwhile
      listing.skipped.emplace(versions.status().message());
    } else if (versions->empty()) {
      listing.skipped.insert(absl::StrCat(model_folder.string(), ": no folder named 1, 2, ..."));
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
  struct stat status = {};
  if (stat(file.c_str(), &status) != 0) return "";
  const auto nanoseconds = [](const timespec& time) { return absl::StrCat(time.tv_sec, ".", time.tv_nsec); };
  // The time of change and the identity notice a copy that keeps its source's size and time (cp -p, rsync -t).
  return absl::StrCat(status.st_size, ":", nanoseconds(status.st_mtim), ":", nanoseconds(status.st_ctim), ":",
                      status.st_dev, ":", status.st_ino);
}

std::string VersionSignature(const std::string& directory) {
  std::set<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsOfModel(name)) files.insert(absl::StrCat(name, ":", FileSignature(entry->path().string())));
  }
  return absl::StrJoin(files, " ");
}

}  // namespace longshort::core

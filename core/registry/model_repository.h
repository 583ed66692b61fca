// What lies in a model repository: <repository>/<model>/<version>/, versions being whole numbers from 1 on, and perhaps
// <repository>/<model>/serving.json, which says how the model is served.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace longshort::core {

// Which versions of a model are to be loaded, of those that there are.
struct VersionPolicy {
  enum class Kind { kLatest, kSpecific, kAll };

  Kind kind = Kind::kLatest;
  // Of kLatest: how many of the highest versions.
  int64_t latest = 1;
  // Of kSpecific. Those that are not there are left out.
  std::set<int64_t> specific = {};

  std::set<int64_t> Choose(const std::set<int64_t>& versions) const;
};

struct RepositoryListing {
  // Models by name, each with at least one version.
  std::map<std::string, std::set<int64_t>> versions;
  // The folders that could not be read, by name, each with the reason. Perhaps models, and perhaps only for now.
  std::map<std::string, std::string> unreadable;
  // What is no model or no version, though it might have been meant to be one (lost+found, a name that is not UTF-8, a
  // link to nothing): a reason for each, with its path. Hidden ones are left out.
  std::set<std::string> skipped;
};

// Errors: NOT_FOUND if there is no such folder, UNAVAILABLE if it cannot be read.
absl::StatusOr<RepositoryListing> ListRepository(const std::string& repository);

std::string VersionDirectory(const std::string& repository, const std::string& model, int64_t version);

std::string ServingFile(const std::string& repository, const std::string& model);

// Size and time of a file in one line, empty if there is none: another line means that the file was changed.
std::string FileSignature(const std::string& file);
// The same of a folder's files, with their names.
std::string FolderSignature(const std::string& folder);

}  // namespace longshort::core

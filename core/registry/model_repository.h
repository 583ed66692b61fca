// The layout of a model repository: <repository>/<model>/<version>/, with whole numbers from 1 as versions, and
// optionally <repository>/<model>/serving.json with the model's serving options.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace longshort::core {

// Which of a model's versions to load.
struct VersionPolicy {
  enum class Kind { kLatest, kSpecific, kAll };

  Kind kind = Kind::kLatest;
  // For kLatest: how many of the highest versions.
  int64_t latest = 1;
  // For kSpecific. Versions that do not exist are ignored.
  std::set<int64_t> specific = {};

  std::set<int64_t> Choose(const std::set<int64_t>& versions) const;
};

struct RepositoryListing {
  // Models by name, each with at least one version.
  std::map<std::string, std::set<int64_t>> versions;
  // Folders that could not be read, by name, each with the reason. They may be models, and the error may be temporary.
  std::map<std::string, std::string> unreadable;
  // Entries that are no model or version but may have been intended as one (lost+found, a name that is not UTF-8, a
  // dangling link): a reason with the path of each. Hidden entries are left out.
  std::set<std::string> skipped;
};

// Errors: NOT_FOUND if there is no such folder, UNAVAILABLE if it cannot be read.
absl::StatusOr<RepositoryListing> ListRepository(const std::string& repository);

std::string VersionDirectory(const std::string& repository, const std::string& model, int64_t version);

std::string ServingFile(const std::string& repository, const std::string& model);

// A file's size, its times of modification and of change, and its identity in one line; empty if there is no file. A
// different line means that the file may have changed; the same line means that it has not.
std::string FileSignature(const std::string& file);
// The same for the files of a version, with their names. Includes temporary files that are renamed to one of them later
// (model.safetensors.partial.17, .model.safetensors.Xa3f), but no other files (a trainer's log).
std::string VersionSignature(const std::string& directory);

}  // namespace longshort::core

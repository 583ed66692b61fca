// What lies in a model repository: <repository>/<model>/<version>/, versions being whole numbers from 1 on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort {

struct RepositoryListing {
  // Models by name, each with at least one version.
  std::map<std::string, std::set<int64_t>> versions;
  // The folders that are no models (lost+found, a name that is not UTF-8), each with the reason. Hidden ones are left
  // out.
  std::vector<std::string> skipped;
};

// Errors: NOT_FOUND if the folder cannot be read.
absl::StatusOr<RepositoryListing> ListRepository(const std::string& repository);

std::string VersionDirectory(const std::string& repository, const std::string& model, int64_t version);

// Names, sizes and times of a folder's files in one line: another line means that the folder was changed.
std::string FolderSignature(const std::string& folder);

}  // namespace longshort

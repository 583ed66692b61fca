// Labelled images on disk: a folder for each class, named as the class, with image files in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort {

struct ImageFile {
  std::string path;
  std::string bytes;  // as encoded
  int64_t target = 0;
};

// Reads the files of all class folders in `directory`, classes and files in the order of their names; what is no folder
// beside them is passed over. If `labels` is empty, it is set to the classes' names.
// Errors: NOT_FOUND if there is no such directory; INVALID_ARGUMENT for a class that is none of `labels`, or if there
// is no image; the file system's. All name the path.
absl::StatusOr<std::vector<ImageFile>> ReadImageFolder(const std::string& directory, std::vector<std::string>& labels);

}  // namespace longshort

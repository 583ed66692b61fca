#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "models/train/class_labels.h"
#include "models/train/image_folder.h"

namespace longshort {
namespace {

constexpr size_t kImageLimitBytes = size_t{1} << 26;

// Paths within `directory`, sorted; folders or plain files.
absl::StatusOr<std::vector<std::filesystem::path>> Entries(const std::filesystem::path& directory, bool folders) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;  // of a link to itself: it is neither
    if (folders ? entry->is_directory(unknown) : entry->is_regular_file(unknown)) paths.push_back(entry->path());
  }
  if (error) return absl::NotFoundError(absl::StrCat(directory.string(), ": cannot be listed: ", error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<ImageFile>> ReadImageFolder(const std::string& directory, std::vector<std::string>& labels) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> folders, Entries(directory, /*folders=*/true));
  if (labels.empty()) {
    for (const std::filesystem::path& folder : folders) labels.push_back(folder.filename().string());
  }
  std::vector<ImageFile> images;
  for (const std::filesystem::path& folder : folders) {
    LS_ASSIGN_OR_RETURN(const int64_t target, ClassOf(labels, folder.filename().string(), folder.string()));
    LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> files, Entries(folder, /*folders=*/false));
    for (const std::filesystem::path& file : files) {
      LS_ASSIGN_OR_RETURN(std::string bytes, ReadTextFile(file.string(), kImageLimitBytes));
      images.push_back({.path = file.string(), .bytes = std::move(bytes), .target = target});
    }
  }
  if (images.empty()) return absl::InvalidArgumentError(absl::StrCat(directory, ": there is no image in its folders"));
  return images;
}

}  // namespace longshort

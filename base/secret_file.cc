#include "base/secret_file.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/stored_bytes.h"

namespace longshort {

absl::StatusOr<std::string> ReadSecretFile(const std::string& option, const std::string& path, size_t limit_bytes) {
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(option, "=", path, " ", what));
  };
  std::error_code error;
  const std::filesystem::perms all = std::filesystem::status(path, error).permissions();
  if (error) return wrong(absl::StrCat("cannot be read: ", error.message()));
  absl::StatusOr<std::string> text = ReadTextFile(path, limit_bytes);
  if (!text.ok()) return wrong(absl::StrCat("cannot be read: ", std::string(text.status().message())));
  if ((all & std::filesystem::perms::others_all) == std::filesystem::perms::none) return text;
  return wrong("may be used by everybody on this machine; chmod o= takes that away");
}

}  // namespace longshort

#include "models/train/model_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/weights/atomic_file.h"
#include "models/weights/safetensors_writer.h"

namespace longshort {
namespace {

constexpr std::string_view kModelFiles[] = {"config.json", "model.safetensors", "vocabulary.txt", "labels.txt"};

namespace fs = std::filesystem;

// Whether there is nothing in it but what another training may have written.
bool IsModelDirectory(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::find(std::begin(kModelFiles), std::end(kModelFiles), name) == std::end(kModelFiles)) return false;
  }
  return !error;
}

absl::Status WriteFiles(const fs::path& directory, const std::vector<NamedParameter>& parameters,
                        absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files) {
  std::vector<at::Tensor> values;
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& parameter : parameters) {
    const bool is_exact = std::find(exact.begin(), exact.end(), parameter.name) != exact.end();
    values.push_back(parameter.value.detach().to(is_exact ? at::kFloat : at::kHalf).contiguous());
    if (!at::isfinite(values.back()).all().item<bool>()) {
      return absl::OutOfRangeError(absl::StrCat("the weights ", parameter.name, " are not finite, or too large for ",
                                                is_exact ? "float32" : "float16", ": the training has diverged"));
    }
    tensors.push_back(
        {.name = parameter.name,
         .type = is_exact ? DataType::kF32 : DataType::kF16,
         .shape = values.back().sizes().vec(),
         .data = {static_cast<const std::byte*>(values.back().const_data_ptr()), values.back().nbytes()}});
  }
  LS_RETURN_IF_ERROR(WriteSafetensors((directory / "model.safetensors").string(), tensors));
  for (const ModelFile& file : files) {
    LS_RETURN_IF_ERROR(WriteFileAtomically((directory / file.name).string(), {file.content}));
  }
  return absl::OkStatus();
}

// Puts `made` in the place of `directory`, which may be there.
absl::Status Replace(const fs::path& directory, const fs::path& made) {
  const fs::path old = made.string() + ".old";
  std::error_code error;
  const bool was_there = fs::exists(directory, error);
  if (was_there) fs::rename(directory, old, error);
  if (!error) {
    fs::rename(made, directory, error);
    std::error_code unknown;
    if (error && was_there) fs::rename(old, directory, unknown);
  }
  if (error) return absl::UnavailableError(absl::StrCat(directory.string(), ": cannot be made: ", error.message()));
  fs::remove_all(old, error);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelDirectory(const std::string& directory) {
  const auto refusal = [&directory](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("--out=", directory, " cannot be made: ", why));
  };
  std::error_code unknown;
  fs::path there = fs::absolute(directory);
  if (fs::is_directory(there, unknown) && !IsModelDirectory(there)) {
    return refusal("there are other files in it than a model's, which would be lost");
  }
  do {  // it is made beside
    there = there.parent_path();
  } while (!fs::exists(there, unknown) && there.has_relative_path());
  if (!fs::is_directory(there, unknown)) return refusal(absl::StrCat(there.string(), " is not a folder"));
  if (access(there.c_str(), W_OK) != 0) return refusal(absl::StrCat(there.string(), ": ", std::strerror(errno)));
  return absl::OkStatus();
}

absl::Status WriteModelDirectory(const std::string& directory, const std::vector<NamedParameter>& parameters,
                                 absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files) {
  LS_RETURN_IF_ERROR(CheckModelDirectory(directory));
  fs::path path = fs::absolute(directory);
  if (!path.has_filename()) path = path.parent_path();  // it ended in a slash
  const fs::path made = path.parent_path() / absl::StrCat(".", path.filename().string(), ".partial.", getpid());
  std::error_code error;
  fs::create_directories(made, error);
  if (error) return absl::UnavailableError(absl::StrCat(made.string(), ": cannot be made: ", error.message()));
  absl::Status status = WriteFiles(made, parameters, exact, files);
  if (status.ok()) status = Replace(path, made);
  if (!status.ok()) fs::remove_all(made, error);
  return status;
}

}  // namespace longshort

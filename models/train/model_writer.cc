#include "models/train/model_writer.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "ATen/core/Tensor.h"
#include "models/status_macros.h"
#include "models/weights/atomic_file.h"
#include "models/weights/safetensors_writer.h"

namespace longshort {

absl::Status WriteModelDirectory(const std::string& directory, const std::vector<NamedParameter>& parameters,
                                 absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::UnavailableError(directory + ": cannot be made: " + error.message());

  std::vector<at::Tensor> values;
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& parameter : parameters) {
    const bool is_exact = std::find(exact.begin(), exact.end(), parameter.name) != exact.end();
    values.push_back(parameter.value.detach().to(is_exact ? at::kFloat : at::kHalf).contiguous());
    tensors.push_back(
        {.name = parameter.name,
         .type = is_exact ? DataType::kF32 : DataType::kF16,
         .shape = values.back().sizes().vec(),
         .data = {static_cast<const std::byte*>(values.back().const_data_ptr()), values.back().nbytes()}});
  }
  LS_RETURN_IF_ERROR(WriteSafetensors(directory + "/model.safetensors", tensors));
  for (const ModelFile& file : files) {
    LS_RETURN_IF_ERROR(WriteFileAtomically(directory + "/" + file.name, {file.content}));
  }
  return absl::OkStatus();
}

}  // namespace longshort

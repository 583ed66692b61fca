// Parses any bytes as a safetensors file. It is rejected with a message, or all tensors are inside the file and
// readable.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/families/language_model/language_model_config.h"
#include "models/weights/safetensors.h"
#include "models/weights/tensors.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  const auto bytes = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(data), size);
  const auto file = models::SafetensorsFile::Parse(bytes, "fuzz");
  if (!file.ok()) {
    Require(file.status().code() == absl::StatusCode::kInvalidArgument, "a broken file is an invalid argument");
    Require(file.status().message().substr(0, 6) == "fuzz: ", "the message starts with the file");
    return 0;
  }
  size_t tensor_bytes = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    tensor_bytes += static_cast<size_t>(tensor.bytes);
    Require(tensor.offset >= 8 && tensor.offset + tensor.bytes <= static_cast<int64_t>(size),
            "a tensor lies inside the file");
    Require(file->Find(name) == &tensor, "a tensor is found by its name");
    std::vector<float> values(static_cast<size_t>(models::ElementCount(tensor.shape).value()));
    Require(tensor.bytes == models::TensorBytes(tensor.shape, tensor.type), "a tensor is as long as its shape says");
    Require(models::ReadAsFloat32(*file, tensor, absl::MakeSpan(values)).ok() == models::IsFloatType(tensor.type),
            "floats can be read");
  }
  Require(tensor_bytes + 8 <= size, "tensors lie inside the file");
  Require(!models::CheckTensors(*file, models::LanguageModelTensors(models::LanguageModelConfig())).ok(),
          "no small file holds the base model");
  return 0;
}

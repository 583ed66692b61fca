#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/byte_order.h"
#include "base/files.h"
#include "base/strict_json.h"
#include "models/weights/safetensors.h"

namespace longshort::models {
namespace {

absl::Status CheckTensor(const NamedTensor& tensor) {
  if (tensor.name == "__metadata__") return absl::InvalidArgumentError("no tensor can be named '__metadata__'");
  if (TensorBytes(tensor.shape, tensor.type) != static_cast<int64_t>(tensor.data.size())) {
    return absl::InvalidArgumentError(absl::StrFormat("tensor %s: %d bytes do not match its shape",
                                                      QuoteForMessage(tensor.name), tensor.data.size()));
  }
  return absl::OkStatus();
}

std::string_view AsText(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string LittleEndian(uint64_t value) {
  std::string bytes(8, '\0');
  WriteNumber(value, ByteOrder::kLittleEndian, 8, bytes.data());
  return bytes;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return DataTypeBits(a->type) > DataTypeBits(b->type);
  });

  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<std::string_view> pieces(2);  // length and header come first
  size_t offset = 0;
  for (const NamedTensor* tensor : order) {
    if (absl::Status status = CheckTensor(*tensor); !status.ok()) return status;
    if (header.contains(tensor->name)) {
      return absl::InvalidArgumentError(absl::StrFormat("tensor %s is given twice", QuoteForMessage(tensor->name)));
    }
    header[tensor->name] = {{"dtype", DataTypeName(tensor->type)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, offset + tensor->data.size()}}};
    offset += tensor->data.size();
    pieces.push_back(AsText(tensor->data));
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    return absl::InvalidArgumentError("a tensor name or a metadata entry is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  const std::string length = LittleEndian(text.size());
  pieces[0] = length;
  pieces[1] = text;
  return WriteFileAtomically(path, pieces);
}

}  // namespace longshort::models

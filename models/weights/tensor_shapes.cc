#include "models/weights/tensor_shapes.h"

#include <set>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/strict_json.h"
#include "models/weights/tensor_values.h"

namespace longshort {
namespace {

std::string ShapeText(absl::Span<const int64_t> shape) { return absl::StrFormat("[%s]", absl::StrJoin(shape, ",")); }

}  // namespace

int64_t CountElements(absl::Span<const TensorShape> tensors) {
  int64_t count = 0;
  for (const TensorShape& tensor : tensors) count += *ElementCount(tensor.shape);
  return count;
}

absl::Status CheckTensors(const SafetensorsFile& file, absl::Span<const TensorShape> expected) {
  const auto wrong = [&file](std::string_view tensor, std::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: tensor %s %s", file.name(), QuoteForMessage(tensor), reason));
  };
  std::set<std::string_view> known;
  for (const TensorShape& tensor : expected) {
    known.insert(tensor.name);
    const StoredTensor* found = file.Find(tensor.name);
    if (found == nullptr) return wrong(tensor.name, "is missing");
    if (found->shape != tensor.shape) {
      return wrong(tensor.name, absl::StrFormat("has shape %s, the configuration makes it %s", ShapeText(found->shape),
                                                ShapeText(tensor.shape)));
    }
    if (!IsFloatType(found->type)) {
      return wrong(tensor.name, absl::StrFormat("has type %s, it must be F32, F16 or BF16", DataTypeName(found->type)));
    }
  }
  for (const auto& [name, tensor] : file.tensors()) {
    if (known.count(name) == 0) return wrong(name, "is unknown");
  }
  return absl::OkStatus();
}

}  // namespace longshort

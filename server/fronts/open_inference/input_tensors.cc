#include "server/fronts/open_inference/input_tensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/bytes_tensor.h"

namespace longshort::server {
namespace {

using inference::InferTensorContents;
using Tensor = inference::ModelInferRequest::InferInputTensor;

std::string ShapeOf(const Tensor& tensor) { return absl::StrCat("[", absl::StrJoin(tensor.shape(), ", "), "]"); }

absl::Status WrongShape(const Tensor& tensor, const std::string& wanted) {
  return FieldError(absl::StrCat("the shape of input ", Quoted(tensor.name())), ShapeOf(tensor), wanted);
}

absl::Status WrongDatatype(const Tensor& tensor, const std::string& wanted) {
  return FieldError(absl::StrCat("the datatype of input ", Quoted(tensor.name())), Quoted(tensor.datatype()), wanted);
}

absl::StatusOr<int64_t> ElementsOf(const Tensor& tensor) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();  // far more than fits into a message
  constexpr int kMaxSizes = 8;
  const auto sizes = [&] { return absl::StrCat("number of sizes in the shape of input ", Quoted(tensor.name())); };
  LS_RETURN_IF_ERROR(CheckFieldRange(sizes, tensor.shape_size(), 1, kMaxSizes));
  int64_t elements = 1;
  for (const int64_t size : tensor.shape()) {
    if (size < 1) return WrongShape(tensor, "sizes of at least 1");
    if (elements > kMax / size) return WrongShape(tensor, absl::StrCat("of at most ", kMax, " elements"));
    elements *= size;
  }
  return elements;
}

int64_t TypedElements(const InferTensorContents& contents) {
  return int64_t{contents.bool_contents_size()} + contents.int_contents_size() + contents.int64_contents_size() +
         contents.uint_contents_size() + contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

// Limits the elements before they are parsed: a message may have far more than a call takes.
absl::Status CheckCount(const Tensor& tensor, int64_t count, int64_t max) {
  return CheckFieldRange([&] { return absl::StrCat("number of elements of input ", Quoted(tensor.name())); }, count, 1,
                         max);
}

// Whether the tensor is [n] or [n, 1].
bool IsList(const Tensor& tensor) {
  return tensor.shape_size() == 1 || (tensor.shape_size() == 2 && tensor.shape(1) == 1);
}

ImageInput ImageOf(std::string_view bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  const std::string_view content = *owner;
  return {.content = content, .owner = std::move(owner), .bytes = static_cast<int64_t>(content.size())};
}

struct PixelShape {
  int64_t images = 1;
  models::RawImage image;  // without values

  int64_t values() const { return image.height * image.width * image.channels; }
};

absl::StatusOr<PixelShape> PixelShapeOf(const Tensor& tensor) {
  const int last = tensor.shape_size() - 1;
  if (last != 2 && last != 3) {
    return WrongShape(tensor, "[height, width, channels] or [images, height, width, channels]");
  }
  PixelShape shape;
  if (last == 3) shape.images = tensor.shape(0);
  shape.image.height = tensor.shape(last - 2);
  shape.image.width = tensor.shape(last - 1);
  shape.image.channels = tensor.shape(last);
  return shape;
}

// Copies the pixels, so that each image owns its memory.
template <typename Value>
ImageInput CopyOf(const PixelShape& shape, const char* from) {
  auto owner = std::make_shared<std::vector<Value>>(shape.values());
  const auto bytes = static_cast<int64_t>(owner->size() * sizeof(Value));
  std::memcpy(owner->data(), from, bytes);
  models::RawImage image = shape.image;
  image.values = absl::MakeConstSpan(*owner);
  return {.content = image, .owner = std::move(owner), .bytes = bytes};
}

}  // namespace

absl::StatusOr<InputTensors> InputTensors::Read(const inference::ModelInferRequest& request) {
  const bool raw = request.raw_input_contents_size() > 0;
  if (raw && request.raw_input_contents_size() != request.inputs_size()) {
    return FieldError("number of raw_input_contents", request.raw_input_contents_size(),
                      absl::StrCat(request.inputs_size(), ", as many as inputs, or none"));
  }
  InputTensors tensors(raw);
  std::set<std::string_view> names;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const std::string_view bytes = raw ? std::string_view(request.raw_input_contents(i)) : std::string_view();
    const Tensor& tensor = request.inputs(i);
    if (!names.insert(tensor.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(tensor.name()), " occurs twice; send it once"));
    }
    LS_ASSIGN_OR_RETURN(Input input, tensors.ReadInput(tensor, bytes));
    tensors.inputs_.push_back(input);
  }
  return tensors;
}

absl::StatusOr<InputTensors::Input> InputTensors::ReadInput(const Tensor& tensor, std::string_view raw) {
  if (raw_ && tensor.has_contents() && TypedElements(tensor.contents()) > 0) {
    return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(tensor.name()),
                                                   " has contents, but the request has raw_input_contents; all inputs "
                                                   "must use the same form, which is also the answer's"));
  }
  for (const auto& [name, value] : tensor.parameters()) {
    if (!absl::StartsWith(name, "shared_memory")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(tensor.name()), " has the parameter ", Quoted(name),
                     "; shared memory is not supported: send the contents in the request"));
  }
  Input input{.tensor = &tensor, .raw = raw};
  LS_ASSIGN_OR_RETURN(input.elements, ElementsOf(tensor));
  return input;
}

const InputTensors::Input* InputTensors::Find(std::string_view name) const {
  for (const Input& input : inputs_) {
    if (input.tensor->name() == name) return &input;
  }
  return nullptr;
}

absl::Status InputTensors::RefuseOthers(absl::Span<const std::string_view> names, std::string_view model) const {
  for (const Input& input : inputs_) {
    if (std::find(names.begin(), names.end(), input.tensor->name()) != names.end()) continue;
    const auto append = [](std::string* known, std::string_view name) { known->append(name); };
    return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(input.tensor->name()), " is unknown; model ",
                                                   std::string(model), " takes ", absl::StrJoin(names, ", ", append)));
  }
  return absl::OkStatus();
}

absl::Status InputTensors::CheckElements(const Input& input, int64_t typed_elements, int64_t element_bytes) const {
  const Tensor& tensor = *input.tensor;
  const std::string of_shape = absl::StrCat("by its shape ", ShapeOf(tensor));
  if (raw_) {
    const auto bytes = static_cast<int64_t>(input.raw.size());
    if (bytes == input.elements * element_bytes) return absl::OkStatus();
    return FieldError(absl::StrCat("number of raw bytes of input ", tensor.name()), bytes,
                      absl::StrCat(input.elements * element_bytes, " ", of_shape));
  }
  if (typed_elements == input.elements && TypedElements(tensor.contents()) == typed_elements) return absl::OkStatus();
  const std::string datatype = tensor.datatype();
  return FieldError(absl::StrCat("number of ", datatype, " contents of input ", tensor.name()), typed_elements,
                    absl::StrCat(input.elements, " ", of_shape, ", with no elements of other datatypes"));
}

absl::StatusOr<std::vector<std::string_view>> InputTensors::Bytes(const Input& input, int64_t max) const {
  LS_RETURN_IF_ERROR(CheckCount(*input.tensor, input.elements, max));
  if (raw_) {
    absl::StatusOr<std::vector<std::string_view>> parsed = ParseBytesTensor(input.raw, input.elements);
    if (parsed.ok()) return parsed;
    return absl::Status(parsed.status().code(), absl::StrCat("the raw contents of input ", input.tensor->name(), " ",
                                                             parsed.status().message()));
  }
  const auto& contents = input.tensor->contents().bytes_contents();
  LS_RETURN_IF_ERROR(CheckElements(input, contents.size(), 0));
  return std::vector<std::string_view>(contents.begin(), contents.end());
}

absl::StatusOr<std::vector<int32_t>> InputTensors::Int32(const Input& input) const {
  const auto& contents = input.tensor->contents().int_contents();
  LS_RETURN_IF_ERROR(CheckElements(input, contents.size(), sizeof(int32_t)));
  if (!raw_) return std::vector<int32_t>(contents.begin(), contents.end());
  std::vector<int32_t> values(input.elements);
  std::memcpy(values.data(), input.raw.data(), input.raw.size());
  return values;
}

absl::StatusOr<std::vector<TextInput>> InputTensors::Texts(std::string_view name, int64_t max,
                                                           std::vector<int32_t>* ids) const {
  const Input& input = *Find(name);
  const Tensor& tensor = *input.tensor;
  std::vector<TextInput> texts;
  if (tensor.datatype() == "BYTES") {
    if (!IsList(tensor)) return WrongShape(tensor, "[n] or [n, 1]");
    LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Bytes(input, max));
    texts.reserve(elements.size());
    for (const std::string_view element : elements) {
      texts.push_back({.kind = TextInput::Kind::kBytes, .text = element});
    }
    return texts;
  }
  if (tensor.datatype() != "INT32") return WrongDatatype(tensor, "BYTES, or INT32 for token ids");
  if (tensor.shape_size() > 2) return WrongShape(tensor, "[tokens] or [n, tokens] of token ids");
  const int64_t tokens = tensor.shape(tensor.shape_size() - 1);
  LS_RETURN_IF_ERROR(CheckCount(tensor, input.elements / tokens, max));
  LS_ASSIGN_OR_RETURN(*ids, Int32(input));
  for (int64_t first = 0; first < input.elements; first += tokens) {
    texts.push_back({.kind = TextInput::Kind::kIds, .ids = absl::MakeConstSpan(*ids).subspan(first, tokens)});
  }
  return texts;
}

absl::StatusOr<std::vector<ImageInput>> InputTensors::Images(std::string_view name, int64_t max) const {
  const Input& input = *Find(name);
  if (input.tensor->datatype() == "BYTES") return EncodedImages(input, max);
  if (input.tensor->datatype() == "UINT8" || input.tensor->datatype() == "FP32") return Pixels(input, max);
  return WrongDatatype(*input.tensor, "BYTES of encoded images, or UINT8 or FP32 pixels");
}

absl::StatusOr<std::vector<ImageInput>> InputTensors::EncodedImages(const Input& input, int64_t max) const {
  if (!IsList(*input.tensor)) return WrongShape(*input.tensor, "[images] or [images, 1]");
  LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Bytes(input, max));
  std::vector<ImageInput> images;
  images.reserve(elements.size());
  for (const std::string_view element : elements) images.push_back(ImageOf(element));
  return images;
}

absl::StatusOr<std::vector<ImageInput>> InputTensors::Pixels(const Input& input, int64_t max) const {
  const Tensor& tensor = *input.tensor;
  LS_ASSIGN_OR_RETURN(const PixelShape shape, PixelShapeOf(tensor));
  LS_RETURN_IF_ERROR(CheckCount(tensor, shape.images, max));
  const bool bytes = tensor.datatype() == "UINT8";
  const auto& narrow = tensor.contents().uint_contents();
  const auto& wide = tensor.contents().fp32_contents();
  LS_RETURN_IF_ERROR(CheckElements(input, bytes ? narrow.size() : wide.size(), bytes ? 1 : sizeof(float)));
  std::vector<char> narrowed;
  if (bytes && !raw_) {
    narrowed.reserve(narrow.size());
    for (const uint32_t value : narrow) {
      const auto name = [&] { return absl::StrCat("element ", narrowed.size(), " of input ", tensor.name()); };
      LS_RETURN_IF_ERROR(CheckFieldRange(name, value, 0, std::numeric_limits<uint8_t>::max()));
      narrowed.push_back(static_cast<char>(value));
    }
  }
  const char* const typed = bytes ? narrowed.data() : reinterpret_cast<const char*>(wide.data());
  const char* from = raw_ ? input.raw.data() : typed;
  std::vector<ImageInput> images;
  for (int64_t i = 0; i < shape.images; ++i, from += images.back().bytes) {
    images.push_back(bytes ? CopyOf<uint8_t>(shape, from) : CopyOf<float>(shape, from));
  }
  return images;
}

}  // namespace longshort::server

// The inputs of a request: checked as a whole, then read as texts or images.
//
// Errors are INVALID_ARGUMENT with the input, its value and the rule.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "open_inference/v2/service.pb.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// A view of a request, valid as long as the request.
class InputTensors final {
 public:
  // Errors: an input that occurs twice, has a negative size, or whose contents are missing, in both forms, or in
  // another form than the rest.
  static absl::StatusOr<InputTensors> Read(const inference::ModelInferRequest& request);

  // Whether the contents are raw. The answer's contents must have the same form.
  bool raw() const { return raw_; }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Errors: an input other than `names`, which `model` takes.
  absl::Status RefuseOthers(absl::Span<const std::string_view> names, std::string_view model) const;

  // At most `max` texts: BYTES [n] or [n, 1], or token ids, INT32 [tokens] or [n, tokens]. The ids are stored in
  // `ids`. REQUIRES: Has(name).
  absl::StatusOr<std::vector<TextInput>> Texts(std::string_view name, int64_t max, std::vector<int32_t>* ids) const;
  // At most `max` images: encoded, BYTES [n] or [n, 1], or pixels, UINT8 or FP32 [height, width, channels] or [n,
  // height, width, channels]. Each image owns its memory. REQUIRES: Has(name).
  absl::StatusOr<std::vector<ImageInput>> Images(std::string_view name, int64_t max) const;

 private:
  // One input: its contents are in `raw`, or in `tensor`.
  struct Input {
    const inference::ModelInferRequest::InferInputTensor* tensor = nullptr;
    std::string_view raw;
    int64_t elements = 0;
  };

  explicit InputTensors(bool raw) : raw_(raw) {}

  absl::StatusOr<Input> ReadInput(const inference::ModelInferRequest::InferInputTensor& tensor, std::string_view raw);
  const Input* Find(std::string_view name) const;
  // Errors: if the number of elements differs from the shape's.
  absl::StatusOr<std::vector<std::string_view>> Bytes(const Input& input, int64_t max) const;
  absl::StatusOr<std::vector<int32_t>> Int32(const Input& input) const;
  absl::Status CheckElements(const Input& input, int64_t typed_elements, int64_t element_bytes) const;

  absl::StatusOr<std::vector<ImageInput>> EncodedImages(const Input& input, int64_t max) const;
  absl::StatusOr<std::vector<ImageInput>> Pixels(const Input& input, int64_t max) const;

  const bool raw_;
  std::vector<Input> inputs_;
};

}  // namespace longshort::server

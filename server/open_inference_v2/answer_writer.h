// Writes the outputs of an answer, raw or typed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "open_inference/v2/service.pb.h"
#include "server/open_inference_v2/model_tensors.h"

namespace longshort {

class AnswerWriter final {
 public:
  // `response` must outlive the writer.
  AnswerWriter(bool raw, inference::ModelInferResponse& response) : raw_(raw), response_(response) {}

  void Add(Output output, const std::vector<int64_t>& shape, absl::Span<const std::string> elements);
  void Add(Output output, const std::vector<int64_t>& shape, absl::Span<const float> elements);
  void Add(Output output, const std::vector<int64_t>& shape, absl::Span<const double> elements);
  void Add(Output output, const std::vector<int64_t>& shape, absl::Span<const int32_t> elements);
  void Add(Output output, const std::vector<int64_t>& shape, absl::Span<const int64_t> elements);
  // Without elements, of its own datatype: what the request has no meaning for.
  void AddNothing(Output output);

 private:
  inference::ModelInferResponse::InferOutputTensor& AddTensor(Output output, const char* datatype,
                                                              const std::vector<int64_t>& shape);
  // Whether it was written, because answers are raw.
  template <typename Value>
  bool AddRaw(absl::Span<const Value> elements);

  const bool raw_;
  inference::ModelInferResponse& response_;
};

}  // namespace longshort

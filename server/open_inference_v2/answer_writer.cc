#include "server/open_inference_v2/answer_writer.h"

#include "server/open_inference_v2/bytes_tensor.h"

namespace longshort {

inference::ModelInferResponse::InferOutputTensor& AnswerWriter::AddTensor(Output output, const char* datatype,
                                                                          const std::vector<int64_t>& shape) {
  inference::ModelInferResponse::InferOutputTensor& tensor = *response_.add_outputs();
  tensor.set_name(std::string(NameOf(output)));
  tensor.set_datatype(datatype);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  return tensor;
}

// Numbers are little-endian, as those of the machines that this runs on.
template <typename Value>
bool AnswerWriter::AddRaw(absl::Span<const Value> elements) {
  if (!raw_) return false;
  response_.add_raw_output_contents(elements.data(), elements.size() * sizeof(Value));
  return true;
}

void AnswerWriter::Add(Output output, const std::vector<int64_t>& shape, absl::Span<const std::string> elements) {
  auto& tensor = AddTensor(output, "BYTES", shape);
  if (raw_) {
    std::string& raw = *response_.add_raw_output_contents();
    for (const std::string& element : elements) AppendBytesElement(element, raw);
    return;
  }
  auto& contents = *tensor.mutable_contents();
  for (const std::string& element : elements) contents.add_bytes_contents(element);
}

void AnswerWriter::Add(Output output, const std::vector<int64_t>& shape, absl::Span<const float> elements) {
  auto& tensor = AddTensor(output, "FP32", shape);
  if (AddRaw(elements)) return;
  tensor.mutable_contents()->mutable_fp32_contents()->Assign(elements.begin(), elements.end());
}

void AnswerWriter::Add(Output output, const std::vector<int64_t>& shape, absl::Span<const double> elements) {
  auto& tensor = AddTensor(output, "FP64", shape);
  if (AddRaw(elements)) return;
  tensor.mutable_contents()->mutable_fp64_contents()->Assign(elements.begin(), elements.end());
}

void AnswerWriter::Add(Output output, const std::vector<int64_t>& shape, absl::Span<const int32_t> elements) {
  auto& tensor = AddTensor(output, "INT32", shape);
  if (AddRaw(elements)) return;
  tensor.mutable_contents()->mutable_int_contents()->Assign(elements.begin(), elements.end());
}

void AnswerWriter::Add(Output output, const std::vector<int64_t>& shape, absl::Span<const int64_t> elements) {
  auto& tensor = AddTensor(output, "INT64", shape);
  if (AddRaw(elements)) return;
  tensor.mutable_contents()->mutable_int64_contents()->Assign(elements.begin(), elements.end());
}

void AnswerWriter::AddNothing(Output output) {
  switch (output) {
    case Output::kLogits:
    case Output::kProbabilities:
      return Add(output, {0}, absl::Span<const float>());
    case Output::kText:
    case Output::kFinishReason:
      return Add(output, {0}, absl::Span<const std::string>());
    case Output::kTokenIds:
      return Add(output, {0}, absl::Span<const int32_t>());
    case Output::kLogLikelihood:
      return Add(output, {0}, absl::Span<const double>());
    case Output::kTokenCount:
    case Output::kScoredTokenCount:
      return Add(output, {0}, absl::Span<const int64_t>());
  }
}

}  // namespace longshort

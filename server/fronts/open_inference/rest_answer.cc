#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "server/fronts/open_inference/bytes_tensor.h"
#include "server/fronts/open_inference/rest_messages.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;
using OutputTensor = inference::ModelInferResponse::InferOutputTensor;

absl::Status NotInJson(const OutputTensor& tensor, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("output ", tensor.name(), " has ", what, ", which JSON cannot have; request it with binary_data"));
}

// Appends numbers with as few digits as identify them.
template <typename Value>
absl::Status AppendNumbers(const OutputTensor& tensor, std::string_view raw, std::string& text) {
  constexpr size_t kMaxDigits = 32;
  for (size_t i = 0; i + sizeof(Value) <= raw.size(); i += sizeof(Value)) {
    Value value = 0;
    std::memcpy(&value, raw.data() + i, sizeof(Value));
    if constexpr (std::is_floating_point_v<Value>) {
      if (!std::isfinite(value)) return NotInJson(tensor, "a number that is not finite");
    }
    std::array<char, kMaxDigits> digits;
    if (i > 0) text += ',';
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
  return absl::OkStatus();
}

absl::Status AppendTexts(const OutputTensor& tensor, std::string_view raw, std::string& text) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape()) elements *= size;
  LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> texts, ParseBytesTensor(raw, elements));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!IsUtf8(texts[i])) return NotInJson(tensor, "bytes that are not UTF-8");
    if (i > 0) text += ',';
    text += ordered_json(std::string(texts[i])).dump();
  }
  return absl::OkStatus();
}

absl::Status AppendData(const OutputTensor& tensor, std::string_view raw, std::string& text) {
  if (tensor.datatype() == "BYTES") return AppendTexts(tensor, raw, text);
  if (tensor.datatype() == "FP32") return AppendNumbers<float>(tensor, raw, text);
  if (tensor.datatype() == "FP64") return AppendNumbers<double>(tensor, raw, text);
  if (tensor.datatype() == "INT32") return AppendNumbers<int32_t>(tensor, raw, text);
  if (tensor.datatype() == "INT64") return AppendNumbers<int64_t>(tensor, raw, text);
  return absl::InternalError(absl::StrCat("outputs of datatype ", tensor.datatype(), " cannot be written as JSON"));
}

nlohmann::json ParameterValue(const inference::InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam:
      return parameter.bool_param();
    case inference::InferParameter::kInt64Param:
      return parameter.int64_param();
    case inference::InferParameter::kUint64Param:
      return parameter.uint64_param();
    case inference::InferParameter::kDoubleParam:
      return parameter.double_param();
    case inference::InferParameter::kStringParam:
      return parameter.string_param();
    case inference::InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return nullptr;
}

// The object without its last brace, so that a field can follow.
std::string Open(const ordered_json& object) {
  std::string text = object.dump();
  text.pop_back();
  return text;
}

ordered_json AnswerHead(const inference::ModelInferResponse& answer) {
  ordered_json head = {{"model_name", answer.model_name()}, {"model_version", answer.model_version()}};
  if (!answer.id().empty()) head["id"] = answer.id();
  nlohmann::json parameters;  // by name
  for (const auto& [name, value] : answer.parameters()) parameters[name] = ParameterValue(value);
  if (!parameters.is_null()) head["parameters"] = parameters;
  return head;
}

}  // namespace

absl::StatusOr<RestAnswer> WriteRestAnswer(const inference::ModelInferResponse& answer, const BinaryOutputs& binary) {
  if (answer.raw_output_contents_size() != answer.outputs_size()) {
    return absl::InternalError("the answer's contents are not raw");
  }
  RestAnswer written;
  std::string& text = written.body;
  std::string behind;
  text = absl::StrCat(Open(AnswerHead(answer)), ",\"outputs\":[");
  bool has_binary = false;
  for (int i = 0; i < answer.outputs_size(); ++i) {
    const OutputTensor& tensor = answer.outputs(i);
    const std::string& raw = answer.raw_output_contents(i);
    ordered_json described = {{"name", tensor.name()}, {"datatype", tensor.datatype()}};
    described["shape"] = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
    if (i > 0) text += ',';
    if (binary.Has(tensor.name())) {
      has_binary = true;
      described["parameters"]["binary_data_size"] = raw.size();
      text += described.dump();
      behind += raw;
      continue;
    }
    absl::StrAppend(&text, Open(described), ",\"data\":[");
    LS_RETURN_IF_ERROR(AppendData(tensor, raw, text));
    text += "]}";
  }
  text += "]}";
  if (has_binary) written.json_bytes = text.size();
  text += behind;
  return written;
}

}  // namespace longshort::server

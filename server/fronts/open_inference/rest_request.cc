#include <limits>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/call/message_size.h"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/rest_messages.h"

namespace longshort::server {
namespace {

using nlohmann::json;
using ParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

constexpr char kBinaryData[] = "binary_data";
constexpr char kBinaryDataOutput[] = "binary_data_output";
constexpr char kBinaryDataSize[] = "binary_data_size";

// What a message takes for a text.
int64_t BytesOf(const std::string& text) { return kStringBytes + HeapBytesOfText(text.size()); }

absl::Status SetParameter(const JsonView& view, inference::InferParameter& parameter) {
  const json& value = view.value();
  if (value.is_boolean()) {
    parameter.set_bool_param(value.get<bool>());
  } else if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    parameter.set_uint64_param(value.get<uint64_t>());
  } else if (const std::optional<int64_t> whole = WholeNumber(value); whole.has_value()) {
    parameter.set_int64_param(*whole);
  } else if (value.is_number()) {
    parameter.set_double_param(value.get<double>());
  } else if (value.is_string()) {
    parameter.set_string_param(value.get<std::string>());
  } else if (view.is_list() && absl::EndsWith(view.path(), ".stop")) {
    for (size_t i = 0; i < view.size(); ++i) LS_RETURN_IF_ERROR(view.At(i).Text().status());
    parameter.set_string_param(value.dump());
  } else {
    return view.Wrong("a number, a string, true or false");
  }
  return absl::OkStatus();
}

absl::Status ReadParameters(const JsonView& object, MemoryMeter& meter, ParameterMap& parameters) {
  const JsonView given = object.At("parameters");
  if (given.is_absent()) return absl::OkStatus();
  if (!given.is_object()) return given.Wrong("an object");
  static const auto& field = *inference::ModelInferRequest::descriptor()->FindFieldByName("parameters");
  RepeatedArray table(field, true);
  for (const auto& [name, value] : given.value().items()) {
    if (value.is_null()) continue;
    LS_RETURN_IF_ERROR(table.Add(1, false, meter));
    LS_RETURN_IF_ERROR(meter.Add(MapNodeBytes(*field.message_type()) + HeapBytesOfText(name.size())));
    if (value.is_string()) LS_RETURN_IF_ERROR(meter.Add(BytesOf(value.get_ref<const std::string&>())));
    LS_RETURN_IF_ERROR(SetParameter(given.At(name), parameters[name]));
    if (value.is_array()) LS_RETURN_IF_ERROR(meter.Add(BytesOf(parameters[name].string_param())));
  }
  return absl::OkStatus();
}

// Removes a parameter of this form and returns its value.
absl::StatusOr<std::optional<bool>> TakeBoolean(ParameterMap& parameters, const std::string& place, const char* name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  if (!found->second.has_bool_param()) {
    return absl::InvalidArgumentError(absl::StrCat(place, "parameters.", name, " must be true or false"));
  }
  const bool value = found->second.bool_param();
  parameters.erase(found);
  return value;
}

absl::Status CheckName(const JsonView& name, const std::string& of_path) {
  if (name.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const std::string_view text, name.Text());
  if (text == of_path || text.empty()) return absl::OkStatus();
  return name.Wrong(absl::StrCat("as in the path, ", Quoted(of_path), ", or missing"));
}

// A list, which may be absent.
absl::StatusOr<JsonView> FindList(const JsonView& root, std::string_view field) {
  JsonView list = root.At(field);
  return list.is_absent() || list.is_list() ? absl::StatusOr<JsonView>(std::move(list)) : list.Wrong("a list");
}

class RequestReader final {
 public:
  RequestReader(std::string_view binary, RestDocument& document, MemoryMeter& meter,
                inference::ModelInferRequest& request)
      : binary_(binary), document_(document), meter_(meter), request_(request) {}

  absl::Status ReadInputs() {
    LS_ASSIGN_OR_RETURN(const JsonView inputs, FindList(JsonView(document_.root), "inputs"));
    for (size_t i = 0; i < inputs.size(); ++i) LS_RETURN_IF_ERROR(ReadInput(inputs.At(i), i));
    if (binary_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", binary_.size(), " bytes of binary data more than binary_data_size says"));
  }

  absl::Status ReadOutputs(BinaryOutputs& binary) {
    LS_ASSIGN_OR_RETURN(const JsonView outputs, FindList(JsonView(document_.root), "outputs"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const JsonView output = outputs.At(i);
      LS_RETURN_IF_ERROR(CheckFields(output, RestBody::kRequestedOutput));
      inference::ModelInferRequest::InferRequestedOutputTensor& tensor = *request_.add_outputs();
      LS_ASSIGN_OR_RETURN(*tensor.mutable_name(), output.Text("name"));
      LS_RETURN_IF_ERROR(ReadParameters(output, meter_, *tensor.mutable_parameters()));
      LS_ASSIGN_OR_RETURN(const std::optional<bool> is_binary,
                          TakeBoolean(*tensor.mutable_parameters(), output.path() + ".", kBinaryData));
      LS_RETURN_IF_ERROR(meter_.Add(ObjectBytes(*tensor.GetDescriptor()) + kPlaceBytes + BytesOf(tensor.name())));
      if (!is_binary.has_value()) continue;
      LS_RETURN_IF_ERROR(meter_.Add(kNamedOutputBytes + HeapBytesOfText(tensor.name().size())));
      binary.by_name[tensor.name()] = *is_binary;
    }
    return absl::OkStatus();
  }

 private:
  // What an element of a repeated field takes beside itself: a pointer in an array that doubles.
  static constexpr int64_t kPlaceBytes = 3 * sizeof(void*);
  // A node of BinaryOutputs.
  static constexpr int64_t kNamedOutputBytes = HeapBytes(4 * sizeof(void*) + sizeof(std::pair<std::string, bool>));

  absl::Status ReadInput(const JsonView& input, size_t index) {
    const std::string& place = input.path();
    LS_RETURN_IF_ERROR(CheckFields(input, RestBody::kInput));
    inference::ModelInferRequest::InferInputTensor& tensor = *request_.add_inputs();
    LS_ASSIGN_OR_RETURN(*tensor.mutable_name(), input.Text("name"));
    LS_ASSIGN_OR_RETURN(*tensor.mutable_datatype(), input.Text("datatype"));
    LS_RETURN_IF_ERROR(ReadShape(input.At("shape"), tensor));
    ParameterMap& parameters = *tensor.mutable_parameters();
    LS_RETURN_IF_ERROR(ReadParameters(input, meter_, parameters));
    LS_ASSIGN_OR_RETURN(const std::optional<size_t> binary_size, TakeBinarySize(parameters, place));

    const size_t bytes_of_shape = static_cast<size_t>(tensor.shape_size()) * sizeof(int64_t);
    LS_RETURN_IF_ERROR(meter_.Add(ObjectBytes(*tensor.GetDescriptor()) + 2 * kPlaceBytes + BytesOf(tensor.name()) +
                                  BytesOf(tensor.datatype()) + HeapBytesOfText(2 * bytes_of_shape) + kStringBytes));
    std::string& raw = *request_.add_raw_input_contents();
    const auto data = document_.data.find(index);
    if (data != document_.data.end()) {
      if (binary_size.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(place, " has both data and binary_data_size; send one of them"));
      }
      LS_RETURN_IF_ERROR(data->second.CheckShape(tensor.shape()));
      raw = data->second.TakeRaw();
    } else if (binary_size.has_value()) {
      LS_RETURN_IF_ERROR(meter_.Add(HeapBytesOfText(*binary_size)));
      raw = binary_.substr(0, *binary_size);
      binary_.remove_prefix(*binary_size);
    } else if (parameters.count("shared_memory_region") == 0) {  // which is refused later
      return absl::InvalidArgumentError(absl::StrCat(place, " has neither data nor the parameter binary_data_size"));
    }
    return absl::OkStatus();
  }

  static absl::Status ReadShape(const JsonView& shape, inference::ModelInferRequest::InferInputTensor& tensor) {
    if (!shape.is_list()) return shape.Wrong("a list");
    for (size_t i = 0; i < shape.size(); ++i) {
      LS_ASSIGN_OR_RETURN(const int64_t size, shape.At(i).Integer());
      tensor.add_shape(size);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<size_t>> TakeBinarySize(ParameterMap& parameters, const std::string& place) const {
    const auto found = parameters.find(kBinaryDataSize);
    if (found == parameters.end()) return std::nullopt;
    const int64_t size = found->second.int64_param();
    const std::string name = absl::StrCat(place, ".parameters.", kBinaryDataSize);
    if (!found->second.has_int64_param() || size < 0) {
      return absl::InvalidArgumentError(name + " must be a whole number of bytes, at least 0");
    }
    if (static_cast<uint64_t>(size) > binary_.size()) {
      return FieldError(name, size,
                        absl::StrCat("at most ", binary_.size(),
                                     ", the bytes that are left behind the JSON, whose length the header "
                                     "Inference-Header-Content-Length says"));
    }
    parameters.erase(found);
    return static_cast<size_t>(size);
  }

  std::string_view binary_;  // what is not read yet
  RestDocument& document_;
  MemoryMeter& meter_;
  inference::ModelInferRequest& request_;
};

}  // namespace

absl::Status ReadRestRequest(std::string_view text, std::string_view binary, int64_t max_bytes, MemoryMeter& meter,
                             inference::ModelInferRequest& request, BinaryOutputs& outputs) {
  RestDocument document;
  LS_RETURN_IF_ERROR(ParseRestDocument(text, max_bytes, meter, document));
  const JsonView root(document.root);
  LS_RETURN_IF_ERROR(CheckFields(root, RestBody::kInferRequest));
  LS_RETURN_IF_ERROR(CheckName(root.At("model_name"), request.model_name()));
  LS_RETURN_IF_ERROR(CheckName(root.At("model_version"), request.model_version()));
  if (root.Has("id")) {
    LS_ASSIGN_OR_RETURN(*request.mutable_id(), root.Text("id"));
  }
  LS_RETURN_IF_ERROR(ReadParameters(root, meter, *request.mutable_parameters()));
  LS_ASSIGN_OR_RETURN(const std::optional<bool> by_default,
                      TakeBoolean(*request.mutable_parameters(), "", kBinaryDataOutput));
  outputs.by_default = by_default.value_or(false);
  RequestReader reader(binary, document, meter, request);
  LS_RETURN_IF_ERROR(reader.ReadInputs());
  LS_RETURN_IF_ERROR(reader.ReadOutputs(outputs));
  meter.Remove(document.root_bytes);
  return absl::OkStatus();
}

}  // namespace longshort::server

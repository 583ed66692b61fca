#include "server/open_inference_v2/rest_request.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/open_inference_v2/rest_document.h"
#include "server/rpc/message_size.h"

namespace longshort::server {
namespace {

using nlohmann::json;
using ParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

constexpr char kBinaryData[] = "binary_data";
constexpr char kBinaryDataOutput[] = "binary_data_output";
constexpr char kBinaryDataSize[] = "binary_data_size";

std::string ShownJson(const json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.dump();
}

// The field; nullptr if it is missing or null.
const json* Find(const json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

absl::StatusOr<std::string> Text(const json& object, const std::string& place, const char* field) {
  const json* const value = Find(object, field);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat(place, ".", field, " is missing"));
  if (!value->is_string()) return FieldError(absl::StrCat(place, ".", field), ShownJson(*value), "a string");
  return value->get<std::string>();
}

// What a message takes for a text.
int64_t BytesOf(const std::string& text) { return kStringBytes + HeapBytesOfText(text.size()); }

absl::Status SetParameter(const json& value, const std::string& place, inference::InferParameter& parameter) {
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
  } else if (value.is_array() && place.ends_with(".stop")) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (!value[i].is_string()) return FieldError(absl::StrCat(place, "[", i, "]"), ShownJson(value[i]), "a string");
    }
    parameter.set_string_param(value.dump());
  } else {
    return FieldError(place, ShownJson(value), "a number, a string, true or false");
  }
  return absl::OkStatus();
}

absl::Status ReadParameters(const json& object, const std::string& place, MemoryMeter& meter,
                            ParameterMap& parameters) {
  const json* const given = Find(object, "parameters");
  if (given == nullptr) return absl::OkStatus();
  if (!given->is_object()) return FieldError(place + "parameters", ShownJson(*given), "an object");
  static const auto& field = *inference::ModelInferRequest::descriptor()->FindFieldByName("parameters");
  RepeatedArray table(field, true);
  for (const auto& [name, value] : given->items()) {
    if (value.is_null()) continue;
    LS_RETURN_IF_ERROR(table.Add(1, false, meter));
    LS_RETURN_IF_ERROR(meter.Add(MapNodeBytes(*field.message_type()) + HeapBytesOfText(name.size())));
    if (value.is_string()) LS_RETURN_IF_ERROR(meter.Add(BytesOf(value.get_ref<const std::string&>())));
    const std::string shown = absl::StrCat(place, "parameters.", name.substr(0, 64));
    LS_RETURN_IF_ERROR(SetParameter(value, shown, parameters[name]));
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

absl::Status CheckName(const json& root, const char* field, const std::string& of_path) {
  if (Find(root, field) == nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const std::string name, Text(root, "the request", field));
  if (name == of_path || name.empty()) return absl::OkStatus();
  return FieldError(field, Quoted(name), absl::StrCat("as in the path, ", Quoted(of_path), ", or missing"));
}

absl::StatusOr<const json*> FindList(const json& root, const char* field) {
  static const json none = json::array();
  const json* const list = Find(root, field);
  if (list == nullptr) return &none;
  if (!list->is_array()) return FieldError(field, ShownJson(*list), "an array");
  return list;
}

class RequestReader final {
 public:
  RequestReader(std::string_view binary, RestDocument& document, MemoryMeter& meter,
                inference::ModelInferRequest& request)
      : binary_(binary), document_(document), meter_(meter), request_(request) {}

  absl::Status ReadInputs() {
    LS_ASSIGN_OR_RETURN(const json* const inputs, FindList(document_.root, "inputs"));
    for (size_t i = 0; i < inputs->size(); ++i) LS_RETURN_IF_ERROR(ReadInput((*inputs)[i], i));
    if (binary_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", binary_.size(), " bytes of binary data more than binary_data_size says"));
  }

  absl::Status ReadOutputs(BinaryOutputs& binary) {
    LS_ASSIGN_OR_RETURN(const json* const outputs, FindList(document_.root, "outputs"));
    for (size_t i = 0; i < outputs->size(); ++i) {
      const json& output = (*outputs)[i];
      const std::string place = absl::StrCat("outputs[", i, "]");
      LS_RETURN_IF_ERROR(RefuseUnknownFields(output, place, {"name", "parameters"}));
      inference::ModelInferRequest::InferRequestedOutputTensor& tensor = *request_.add_outputs();
      LS_ASSIGN_OR_RETURN(*tensor.mutable_name(), Text(output, place, "name"));
      LS_RETURN_IF_ERROR(ReadParameters(output, place + ".", meter_, *tensor.mutable_parameters()));
      LS_ASSIGN_OR_RETURN(const std::optional<bool> is_binary,
                          TakeBoolean(*tensor.mutable_parameters(), place + ".", kBinaryData));
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

  absl::Status ReadInput(const json& input, size_t index) {
    const std::string place = absl::StrCat("inputs[", index, "]");
    LS_RETURN_IF_ERROR(RefuseUnknownFields(input, place, {"name", "shape", "datatype", "parameters", "data"}));
    inference::ModelInferRequest::InferInputTensor& tensor = *request_.add_inputs();
    LS_ASSIGN_OR_RETURN(*tensor.mutable_name(), Text(input, place, "name"));
    LS_ASSIGN_OR_RETURN(*tensor.mutable_datatype(), Text(input, place, "datatype"));
    LS_RETURN_IF_ERROR(ReadShape(input, place, tensor));
    ParameterMap& parameters = *tensor.mutable_parameters();
    LS_RETURN_IF_ERROR(ReadParameters(input, place + ".", meter_, parameters));
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

  static absl::Status ReadShape(const json& input, const std::string& place,
                                inference::ModelInferRequest::InferInputTensor& tensor) {
    const json* const shape = Find(input, "shape");
    if (shape == nullptr) return absl::InvalidArgumentError(place + ".shape is missing");
    if (!shape->is_array()) return FieldError(place + ".shape", ShownJson(*shape), "an array");
    for (const json& size : *shape) {
      const std::optional<int64_t> whole = WholeNumber(size);
      if (!whole.has_value()) {
        return FieldError("a size in " + place + ".shape", ShownJson(size), "a whole number of 64 bits");
      }
      tensor.add_shape(*whole);
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

absl::Status RefuseUnknownFields(const json& object, const std::string& place,
                                 std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return FieldError(place, ShownJson(object), "an object");
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto append = [](std::string* names, std::string_view one) { names->append(one); };
    return FieldError(absl::StrCat("a field of ", place), Quoted(name),
                      absl::StrCat("one of ", absl::StrJoin(known, ", ", append)));
  }
  return absl::OkStatus();
}

absl::Status ReadRestRequest(std::string_view text, std::string_view binary, int64_t max_bytes, MemoryMeter& meter,
                             inference::ModelInferRequest& request, BinaryOutputs& outputs) {
  RestDocument document;
  LS_RETURN_IF_ERROR(ParseRestDocument(text, max_bytes, meter, document));
  const json& root = document.root;
  LS_RETURN_IF_ERROR(RefuseUnknownFields(root, "the request",
                                         {"id", "inputs", "outputs", "parameters", "model_name", "model_version"}));
  LS_RETURN_IF_ERROR(CheckName(root, "model_name", request.model_name()));
  LS_RETURN_IF_ERROR(CheckName(root, "model_version", request.model_version()));
  if (Find(root, "id") != nullptr) {
    LS_ASSIGN_OR_RETURN(*request.mutable_id(), Text(root, "the request", "id"));
  }
  LS_RETURN_IF_ERROR(ReadParameters(root, "", meter, *request.mutable_parameters()));
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

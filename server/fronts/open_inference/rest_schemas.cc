#include <string_view>

#include "server/fronts/open_inference/rest_messages.h"

namespace longshort::server {
namespace {

constexpr char kParameters[] = R"({"type": "object", "additionalProperties": {
  "type": ["string", "number", "boolean"]}})";
constexpr char kData[] = R"({"type": "array", "items": {}})";

// Begins with the bodies of RestBody, in its order.
std::vector<NamedSchema> MakeSchemas() {
  return {
      {.name = "InferenceRequest",
       .kind = BodyKind::kRequest,
       .fields = {{"id", "string", "The answer has the same."},
                  {.name = "inputs", .type = "[InferenceInput]", .help = "The model's inputs.", .required = true},
                  {"outputs", "[RequestedOutput]",
                   "The outputs that are wanted; by default those of the model's task."},
                  {"parameters", "InferenceParameters", "Options of the call."},
                  {"model_name", "string", "As in the path."},
                  {"model_version", "string", "As in the path."}}},
      {.name = "InferenceInput",
       .kind = BodyKind::kRequest,
       .fields = {{.name = "name", .type = "string", .help = "As the model's metadata name it.", .required = true},
                  {.name = "shape", .type = "[integer]", .help = "Up to 8 sizes.", .required = true},
                  {.name = "datatype", .type = "string", .help = "BYTES, INT32, UINT8 or FP32.", .required = true},
                  {"parameters", kParameters, "binary_data_size: the bytes behind the JSON that are the data."},
                  {"data", kData, "The elements, flat or nested as the shape is."}}},
      {.name = "RequestedOutput",
       .kind = BodyKind::kRequest,
       .fields = {{.name = "name", .type = "string", .help = "As the model's metadata name it.", .required = true},
                  {"parameters", kParameters,
                   "binary_data: whether it comes behind the JSON; classification: as the "
                   "names of so many classes."}}},
      {.name = "RepositoryIndexRequest",
       .kind = BodyKind::kRequest,
       .fields = {{"ready", "boolean", "Only models that are served."}}},
      {.name = "RepositoryRequest",
       .kind = BodyKind::kRequest,
       .fields = {{"parameters", "{any}", "Must be empty, except for unload_dependents, which changes nothing."}}},

      {.name = "InferenceAnswer",
       .fields = {{"model_name", "string", "The model."},
                  {"model_version", "string", "Its version."},
                  {.name = "id", .type = "string", .help = "The request's.", .optional = true},
                  {.name = "parameters", .type = kParameters, .help = "Such as the seed.", .optional = true},
                  {"outputs", "[InferenceOutput]", "The outputs."}}},
      {.name = "InferenceOutput",
       .fields = {{"name", "string", "Its name."},
                  {"datatype", "string", "BYTES, INT32, INT64, FP32 or FP64."},
                  {"shape", "[integer]", "Its sizes."},
                  {.name = "parameters",
                   .type = kParameters,
                   .help = "binary_data_size: how many bytes behind the JSON it has.",
                   .optional = true},
                  {.name = "data", .type = kData, .help = "The elements, flat.", .optional = true}}},
      {.name = "ModelReady", .fields = {{"name", "string", "The model."}, {"ready", "boolean", "Whether it serves."}}},
      {.name = "ModelLoaded", .fields = {{"name", "string", "The model."}, {"load", "boolean", "true"}}},
      {.name = "ModelUnloaded", .fields = {{"name", "string", "The model."}, {"unload", "boolean", "true"}}},
      {.name = "OpenInferenceError",
       .fields = {{"error", "string", "What is wrong: the field, its value, and the limit."}}},
  };
}

}  // namespace

const std::vector<NamedSchema>& RestSchemas() {
  static const auto* const schemas = new std::vector<NamedSchema>(MakeSchemas());
  return *schemas;
}

absl::Status CheckFields(const JsonView& object, RestBody body) {
  std::vector<std::string_view> names;
  for (const SchemaField& field : RestSchemas()[static_cast<size_t>(body)].fields) names.push_back(field.name);
  return object.RefuseUnknown(names);
}

}  // namespace longshort::server

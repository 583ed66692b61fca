// The names of the fields of this room's HTTP calls, and the models that the calls name.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "server/call/call_record.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

std::string NameOfCompletionsField(const FieldPath& path);
std::string NameOfEmbeddingsField(const FieldPath& path);
std::string NameOfClassifierField(const FieldPath& path);

inline constexpr FieldVocabulary kCompletionsVocabulary = {.name_of = NameOfCompletionsField,
                                                           .text_kinds = "text or token ids",
                                                           .image_kinds = "",
                                                           .streaming_rpc = "`stream`"};
// 2,048 embeddings of 4,096 numbers. Clients of these protocols have no limit of their own.
inline constexpr int64_t kAnswerBytes = int64_t{33} << 20;
inline constexpr FieldVocabulary kEmbeddingsVocabulary = {.name_of = NameOfEmbeddingsField,
                                                          .text_kinds = "text or token ids",
                                                          .image_kinds = "",
                                                          .streaming_rpc = "",
                                                          .answer_bytes = kAnswerBytes};
inline constexpr FieldVocabulary kClassifierVocabulary = {.name_of = NameOfClassifierField,
                                                          .text_kinds = "text",
                                                          .image_kinds = "an image file",
                                                          .streaming_rpc = "",
                                                          .answer_bytes = kAnswerBytes};

// The model "NAME", or "NAME/VERSION".
ModelReference ReferenceOf(const std::string& name);

// The model `name`, or if that is empty the only one of its `kind` that the caller may use. Errors: NOT_FOUND if there
// is none, INVALID_ARGUMENT naming them if there are several.
absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind);

}  // namespace longshort::server

// The names of the HTTP calls of this room, and of their fields.
#pragma once

#include "server/calls/call_names.h"

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

}  // namespace longshort::server

// Converts the documents of a text classifier's item to token ids, and truncates them.
//
// Thread: a stateless free function, which runs on gRPC's threads.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/registry/served_model.h"
#include "server/calls/call_names.h"
#include "server/handlers/text_reader.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {

// The documents with their readings. With `truncate`, a long document keeps its first max_document_tokens tokens. A
// model that joins pairs keeps a document's last token, `</s>`, too, and truncates a pair by Hugging Face's rule
// longest_first.
// REQUIRES: the model accepts as many documents.
// Errors: those of ReadBeginning; INVALID_ARGUMENT for padding alone, and for documents that are too long.
absl::StatusOr<TextToScore> ReadDocuments(const core::ServedClassifier& model, bool truncate, const CallNames& names,
                                          absl::Span<const NamedText> documents);

}  // namespace longshort::server

// What a server takes of one document.
#pragma once

#include "absl/status/status.h"
#include "clients/cpp/documents.h"
#include "longshort/v1/models.pb.h"

namespace longshort {

// Refuses a document that the server would refuse for its tokens, and with `truncate` cuts one so that the server still
// sees that it goes on: what is too long is mostly too large a message, too.
// Documents whose tokens are words are left as they are: only the server knows how long they are.
// Errors: INVALID_ARGUMENT with the length, the limit and what to do.
absl::Status FitDocument(const v1::Model& model, bool truncate, DocumentInputs& inputs);

}  // namespace longshort

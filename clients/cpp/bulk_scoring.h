// Any number of documents scored over one stream, with results in the documents' order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "clients/cpp/client.h"
#include "clients/cpp/document_source.h"

namespace longshort {

// Checks a document before it is sent, and may cut it. A status that is not OK becomes the document's error.
using CheckDocument = absl::FunctionRef<absl::Status(DocumentInputs&)>;

// An answer holds the score, the classification or the error; its id means nothing.
using OnScored = absl::FunctionRef<void(const std::string& name, const v1::ScoreTextsResponse& answer)>;

struct BulkLimits {
  // Documents in work.
  int32_t window = 1;
  // Of the message of one document, which is refused beyond; 0 is no limit.
  int64_t message_bytes = 0;
  // Of answers that wait for those before them: then no more documents are sent.
  size_t held_bytes = size_t{256} << 20;
};

// Reads, checks and sends documents, and calls `on_scored`, in one thread at a time, for each in the order of `source`:
// an answer that comes early waits for those before it. `source` and `check` are used in a thread of their own. Errors:
// what ended the stream; INTERNAL if it ended well and left documents unanswered. Those of single documents are
// answers.
absl::Status ScoreInBulk(Client& client, const v1::ScoreTextsOptions& options, const BulkLimits& limits,
                         DocumentSource& source, CheckDocument check, OnScored on_scored);

}  // namespace longshort

// Any number of documents scored by one or several servers, with results in the documents' order.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "clients/cpp/command.h"
#include "clients/cpp/document_source.h"
#include "clients/cpp/documents_in_hand.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort {

struct BulkOptions {
  v1::ScoreTextsOptions texts = {};
  // Servers that fail are waited for, as far as their failures may pass. Otherwise they are left.
  bool retry = false;
  BulkLimits limits = {};
};

struct BulkListener {
  OnScored on_scored;
  // A server failed and is left, or is waited for, or is back: a sentence.
  absl::FunctionRef<void(const std::string& news)> on_news;
};

struct BulkEnd {
  absl::Status status;
  // Whose status that is.
  std::string server = {};
};

// The model as the first server that answers describes it; with `retry`, waits until one does. Errors: what ended the
// last try.
absl::StatusOr<v1::Model> DescribeModel(absl::Span<const ServerClient> servers, const v1::ModelSelector& selector,
                                        bool retry, absl::FunctionRef<void(const std::string& news)> on_news);

// Gives the documents of `source` to all servers, to each as fast as it answers, over one stream each. `on_scored` is
// called for each document in the order of `source`. A server is only asked while it has `model`: by fingerprint and
// precision, so that all answers are of the same weights. What a server leaves unanswered is asked again, of any.
// All functions are called in one thread at a time. The status is OK if all documents were answered; otherwise what the
// last server failed by, or CANCELLED. Errors of single documents are answers.
BulkEnd ScoreInBulk(absl::Span<const ServerClient> servers, const v1::Model& model, const BulkOptions& options,
                    DocumentSource& source, CheckDocument check, const BulkListener& listener);

}  // namespace longshort

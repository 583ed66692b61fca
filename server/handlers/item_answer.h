// A classifier's answer for an item: its classes, with logits and probabilities if requested, or its embedding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/requests/classifier_engine.h"
#include "models/classifier.h"
#include "server/calls/call_names.h"
#include "server/calls/classifier_calls.h"
#include "server/calls/request_limits.h"

namespace longshort::server {

// gen_ai.operation.name: OpenTelemetry defines none for classification.
inline constexpr char kClassificationOperation[] = "classify";

// The options as the model can serve them: top_k is in [1, number of classes]; a larger value means all.
// Errors: INVALID_ARGUMENT with the field, its value and the limit; FAILED_PRECONDITION if the model does not classify.
absl::StatusOr<ClassOptions> ReadClassAnswer(const ClassOptions& options, const models::ClassifierInfo& info,
                                             const CallNames& names);

// What the model computes for this answer.
models::ClassifierOutput OutputOf(const ClassOptions& answer);

// Whether `items` of `item_bytes` each fit into one answer of `max_bytes`. Errors: INVALID_ARGUMENT naming what `field`
// makes, the limit, and how many items do.
absl::Status CheckAnswerBytes(absl::FunctionRef<std::string()> field, int64_t items, int64_t item_bytes,
                              int64_t max_bytes);

// Upper bound of the wire size of one item's Classification, in every protocol.
int64_t MaxBytes(const ClassOptions& answer, const models::ClassifierInfo& info);
// Errors: INVALID_ARGUMENT if the classes, logits and features of `items` items exceed `max_bytes`.
absl::Status CheckAnswerFits(const ClassOptions& answer, const models::ClassifierInfo& info, int64_t items,
                             int64_t max_bytes, const CallNames& names);

// Converts the logits to the requested answer, with the labels of `info`.
Classification AnswerOf(core::ItemResult result, const ClassOptions& answer, const models::ClassifierInfo& info);

// gen_ai.operation.name, as OpenTelemetry defines it.
inline constexpr char kEmbeddingOperation[] = "embeddings";

// The poolings that the model has, besides kHead.
std::vector<Pooling> PoolingsOf(const models::ClassifierInfo& info);
// Errors: INVALID_ARGUMENT for kUnknown, FAILED_PRECONDITION if the model has no such pooling.
absl::StatusOr<models::ClassifierOutput> OutputOf(Pooling pooling, const models::ClassifierInfo& info,
                                                  const CallNames& names);

// Upper bound of the wire size of one Embedding.
int64_t MaxEmbeddingBytes(const models::ClassifierInfo& info);
// Errors: INVALID_ARGUMENT if the embeddings of `items` items exceed `max_bytes`.
absl::Status CheckEmbeddingsFit(const models::ClassifierInfo& info, int64_t items, int64_t max_bytes);

// `normalize`: to length 1, unless all numbers are 0.
Embedding EmbeddingOf(core::ItemResult result, bool normalize);

}  // namespace longshort::server

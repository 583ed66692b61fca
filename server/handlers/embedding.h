// A classifier's embedding of an item: which of its outputs it is, and the answer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/requests/classifier_engine.h"
#include "models/classifier.h"
#include "server/calls/call_names.h"
#include "server/calls/embed_call.h"

namespace longshort::server {

// gen_ai.operation.name, as OpenTelemetry defines it.
inline constexpr char kEmbeddingOperation[] = "embeddings";

// The poolings that the model has, besides kHead.
std::vector<Pooling> PoolingsOf(const models::ClassifierInfo& info);
// Errors: INVALID_ARGUMENT for kUnknown, FAILED_PRECONDITION if the model has no such pooling.
absl::StatusOr<models::ClassifierOutput> OutputOf(Pooling pooling, const models::ClassifierInfo& info,
                                                  const CallNames& names);

// Upper bound of the wire size of one Embedding.
int64_t MaxEmbeddingBytes(const models::ClassifierInfo& info);
// Errors: INVALID_ARGUMENT if the embeddings of `items` items are too large for one answer.
absl::Status CheckEmbeddingsFit(const models::ClassifierInfo& info, int64_t items, const CallNames& names);

// `normalize`: to length 1, unless all numbers are 0.
Embedding EmbeddingOf(core::ItemResult result, bool normalize);

}  // namespace longshort::server

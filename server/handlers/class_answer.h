// What an answer tells of a classifier's scores: the likeliest classes, or all logits too.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/requests/classification_request.h"
#include "models/classifier.h"
#include "server/calls/call_names.h"
#include "server/calls/classify_call.h"
#include "server/calls/request_limits.h"

namespace longshort::server {

// gen_ai.operation.name: OpenTelemetry has none of its own for this.
inline constexpr char kClassificationOperation[] = "classify";

// The options as the model can answer them: top_k is 1 to the number of classes; more than there are means all.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit.
absl::StatusOr<ClassOptions> ReadClassAnswer(const ClassOptions& options, const models::ClassifierInfo& info,
                                             const CallNames& names);

// Bytes of one item's Classification on the wire, at the most: a bound that every front keeps.
int64_t MaxBytes(const ClassOptions& answer, const models::ClassifierInfo& info);
// Errors: INVALID_ARGUMENT if the classes and logits of `items` items are too large for one answer.
absl::Status CheckAnswerFits(const ClassOptions& answer, const models::ClassifierInfo& info, int64_t items,
                             const RequestLimits& limits, const CallNames& names);

// Shows the labels of `info`.
Classification AnswerOf(core::ItemScores scores, const ClassOptions& answer, const models::ClassifierInfo& info);

}  // namespace longshort::server

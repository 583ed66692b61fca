// What an answer tells of a classifier's scores: the likeliest classes, or all logits too.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/requests/classification_request.h"
#include "longshort/v1/inference.pb.h"
#include "models/classifier.h"
#include "server/requests/request_limits.h"

namespace longshort {

struct ClassAnswer {
  // 1 to the number of classes.
  int64_t top_k = 0;
  bool all_logits = false;
};

// `top_k` as the contract's fields of this name: 0 takes the default, more than there are classes takes all.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit.
absl::StatusOr<ClassAnswer> ReadClassAnswer(int32_t top_k, bool all_logits, const ClassifierInfo& info);

// Bytes of one item's v1::Classification on the wire, at the most.
int64_t MostBytes(const ClassAnswer& answer, const ClassifierInfo& info);
// Errors: INVALID_ARGUMENT if the classes and logits of `items` items are too large for one answer.
absl::Status CheckAnswerFits(const ClassAnswer& answer, const ClassifierInfo& info, int64_t items,
                             const RequestLimits& limits);

v1::Classification ToMessage(const ItemScores& scores, const ClassAnswer& answer, const ClassifierInfo& info);

}  // namespace longshort

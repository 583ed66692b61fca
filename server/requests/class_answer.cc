#include "server/requests/class_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/status_macros.h"
#include "core/sampling/log_probabilities.h"
#include "server/requests/field_error.h"

namespace longshort {
namespace {

constexpr int64_t kDefaultTopK = 5;
// On the wire, of one named class beside its label: index, probability, tags and lengths.
constexpr int64_t kClassBytes = 24;
// Of one classification beside its classes and logits: timings, document lengths, tags and lengths.
constexpr int64_t kItemBytes = 96;

v1::ClassificationTimings ToMessage(const ClassificationTimings& timings) {
  v1::ClassificationTimings message;
  message.set_preparation_seconds(absl::ToDoubleSeconds(timings.preparation));
  message.set_queue_seconds(absl::ToDoubleSeconds(timings.queue));
  message.set_run_seconds(absl::ToDoubleSeconds(timings.run));
  return message;
}

}  // namespace

absl::StatusOr<ClassAnswer> ReadClassAnswer(int32_t top_k, bool all_logits, const ClassifierInfo& info) {
  LS_RETURN_IF_ERROR(CheckFieldRange("top_k", top_k, 0, std::numeric_limits<int32_t>::max()));
  return ClassAnswer{.top_k = std::min(top_k == 0 ? kDefaultTopK : top_k, info.classes), .all_logits = all_logits};
}

int64_t MostBytes(const ClassAnswer& answer, const ClassifierInfo& info) {
  size_t longest_label = 0;
  for (const std::string& label : info.labels) longest_label = std::max(longest_label, label.size());
  const int64_t logits = answer.all_logits ? info.classes * static_cast<int64_t>(sizeof(float)) : 0;
  return kItemBytes + logits + answer.top_k * (kClassBytes + static_cast<int64_t>(longest_label));
}

absl::Status CheckAnswerFits(const ClassAnswer& answer, const ClassifierInfo& info, int64_t items,
                             const RequestLimits& limits) {
  return CheckFieldRange("number of bytes to return (top_k classes with their labels, all_logits, times items)",
                         items * MostBytes(answer, info), 0, limits.class_bytes);
}

v1::Classification ToMessage(const ItemScores& scores, const ClassAnswer& answer, const ClassifierInfo& info) {
  v1::Classification message;
  LogProbabilities probabilities;
  if (probabilities.SetRow(scores.logits).ok()) {  // the engine gives finite logits only
    for (const TokenLogProbability& likely : probabilities.Likeliest(answer.top_k)) {
      v1::ClassProbability& named = *message.add_classes();
      named.set_index(likely.token);
      if (!info.labels.empty()) named.set_label(info.labels[likely.token]);
      named.set_probability(std::exp(likely.log_probability));
    }
  }
  if (answer.all_logits) message.mutable_logits()->Assign(scores.logits.begin(), scores.logits.end());
  *message.mutable_timings() = ToMessage(scores.timings);
  return message;
}

}  // namespace longshort

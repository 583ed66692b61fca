#include "core/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::core {

absl::Status CheckLogitsAreFinite(absl::Span<const float> logits) {
  for (size_t token = 0; token < logits.size(); ++token) {
    if (!std::isfinite(logits[token])) {
      return absl::InternalError(absl::StrCat("the model returned the logit ", logits[token], " for token ", token));
    }
  }
  return absl::OkStatus();
}

absl::Status LogProbabilities::SetRow(absl::Span<const float> logits) {
  LS_RETURN_IF_ERROR(CheckLogitsAreFinite(logits));
  logits_ = logits;
  largest_ = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest_);
  log_sum_ = std::log(sum);
  return absl::OkStatus();
}

std::vector<TokenLogProbability> LogProbabilities::Likeliest(int64_t count) {
  const int64_t found = std::min<int64_t>(count, static_cast<int64_t>(logits_.size()));
  if (found == 0) return {};
  order_.resize(logits_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto likelier = [this](int32_t a, int32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  };
  std::partial_sort(order_.begin(), order_.begin() + found, order_.end(), likelier);
  std::vector<TokenLogProbability> likeliest(found);
  for (int64_t i = 0; i < found; ++i) {
    likeliest[i] = {.token = order_[i], .log_probability = static_cast<float>(Of(order_[i]))};
  }
  return likeliest;
}

}  // namespace longshort::core

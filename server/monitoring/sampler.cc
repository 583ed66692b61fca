#include "server/monitoring/sampler.h"

#include <cmath>

namespace longshort {
namespace {

constexpr uint64_t kNumbers = uint64_t{1} << 56;

}  // namespace

Sampler::Sampler(double ratio, bool parent_based)
    : parent_based_(parent_based),
      first_sampled_(static_cast<uint64_t>(std::llround((1 - ratio) * static_cast<double>(kNumbers)))) {}

bool Sampler::Samples(const TraceId& id, const std::optional<TraceContext>& parent) const {
  if (parent_based_ && parent.has_value()) return parent->sampled;
  return id.low % kNumbers >= first_sampled_;
}

}  // namespace longshort

#include "core/requests/job.h"

#include <algorithm>

#include "core/requests/request_context.h"

namespace longshort {

absl::Status Job::WhyAbandoned(absl::Time now) const {
  return longshort::WhyAbandoned(context(), now, times.started != absl::InfiniteFuture());
}

void Job::GiveBack() {
  seat.Leave();
  holdings.session.reset();
  holdings.tokens = {};
}

void Job::OnBegun(int64_t position, int64_t reused) {
  if (!reused_tokens_.has_value()) reused_tokens_ = reused;
  stream_.MarkReadUntil(std::max(stream_.read(), position));
}

void Job::OnSkipped(int64_t position) {
  if (position <= stream_.read()) return;
  *reused_tokens_ += position - stream_.read();
  stream_.MarkReadUntil(position);
}

}  // namespace longshort

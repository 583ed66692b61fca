#include "core/engine/sequence.h"

#include "models/status_macros.h"

namespace longshort {

Sequence::Sequence(std::unique_ptr<Job> job, std::unique_ptr<CachedSequence> cached)
    : job_(std::move(job)), cached_(std::move(cached)) {}

absl::StatusOr<Slice> Sequence::NextSlice(int64_t count) {
  Slice slice;
  slice.tokens = job_->Unread().first(count);
  slice.logit_rows = job_->LogitRows(count);
  LS_RETURN_IF_ERROR(cached_->FillIn(slice));
  return slice;
}

absl::Status Sequence::OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) {
  cached_->OnRead(job_->Unread().first(count));
  return job_->OnRead(count, logits, now);
}

}  // namespace longshort

#include "core/engine/sequence.h"

namespace longshort {

Sequence::Sequence(std::unique_ptr<Job> job, SequencePages pages, int64_t segment_length)
    : job_(std::move(job)), pages_(std::move(pages)), segment_length_(segment_length) {}

Slice Sequence::NextSlice(int64_t count) {
  Slice slice;
  slice.tokens = job_->Unread().first(count);
  slice.position = position_;
  slice.segment_start = position_ / segment_length_ * segment_length_;
  slice.logit_rows = job_->LogitRows(count);
  pages_.FillIn(slice);
  return slice;
}

absl::Status Sequence::OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) {
  position_ += count;
  return job_->OnRead(count, logits, now);
}

}  // namespace longshort

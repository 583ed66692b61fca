// A running job with its pages and its place in its stream.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/cache/sequence_pages.h"
#include "core/engine/job.h"
#include "models/model.h"

namespace longshort {

// Its history begins at position 0, and its segments at the multiples of L.
class Sequence {
 public:
  Sequence(std::unique_ptr<Job> job, SequencePages pages, int64_t segment_length);

  Job& job() { return *job_; }
  // Ends the sequence; its pages are given back when this is destroyed.
  std::unique_ptr<Job> TakeJob() { return std::move(job_); }

  // Stream position of the first unread token.
  int64_t position() const { return position_; }

  // The slice of the first `count` unread tokens; valid until the next call.
  Slice NextSlice(int64_t count);
  // That slice was run: the job gets its logits. Errors: as Job::OnRead.
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now);

 private:
  std::unique_ptr<Job> job_;
  SequencePages pages_;
  const int64_t segment_length_;
  int64_t position_ = 0;
};

}  // namespace longshort

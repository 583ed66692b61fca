// A running job with its pages and its place in its stream.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/cache/cached_sequence.h"
#include "core/engine/job.h"
#include "models/model.h"

namespace longshort {

// Its history begins at position 0, and its segments at the multiples of L.
class Sequence {
 public:
  // The job has been told what it need not read.
  Sequence(std::unique_ptr<Job> job, std::unique_ptr<CachedSequence> cached);

  Job& job() { return *job_; }
  // Ends the sequence; its pages are given back when this is destroyed.
  std::unique_ptr<Job> TakeJob() { return std::move(job_); }

  // Stream position of the first unread token.
  int64_t position() const { return cached_->position(); }

  // How many of the first `wanted` unread tokens one slice may have, as far as cache pages go; at least 1.
  int64_t MostTokens(int64_t wanted) const { return cached_->MostTokens(wanted); }
  // The slice of the first `count` unread tokens; valid until the next call. REQUIRES: count <= MostTokens(count).
  // Errors: INTERNAL if the cache does not have what it promised.
  absl::StatusOr<Slice> NextSlice(int64_t count);
  // That slice was run: the job gets its logits. Errors: as Job::OnRead.
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now);

 private:
  std::unique_ptr<Job> job_;
  std::unique_ptr<CachedSequence> cached_;
};

}  // namespace longshort

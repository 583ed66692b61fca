// A running job with its pages.
//
// The cache may stand before what the job has read (its session's pages were given up, or its worker failed): then the
// sequence first reads those tokens again, for their rows only, and the job does not notice.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cache/cached_sequence.h"
#include "core/cache/paged_cache.h"
#include "core/requests/job.h"
#include "models/model.h"

namespace longshort {

class Sequence {
 public:
  // Tells the job where the cache stands.
  Sequence(std::unique_ptr<Job> job, std::unique_ptr<CachedSequence> cached);

  Job& job() { return *job_; }
  // End the sequence, one or both; pages that were not taken are given back when this is destroyed.
  std::unique_ptr<Job> TakeJob() { return std::move(job_); }
  std::unique_ptr<CachedSequence> TakeCached() { return std::move(cached_); }

  // Stream position of the first unread token.
  int64_t position() const { return cached_->position(); }
  // The tokens that are to be read now.
  absl::Span<const int32_t> Unread() const;
  // How many there were when it began.
  int64_t unread_when_begun() const { return unread_when_begun_; }
  // Whether they are read again, for their rows only.
  bool catching_up() const { return cached_->position() < job_->stream().read(); }
  // Whether that is one sampled token.
  bool decoding() const { return !catching_up() && job_->decoding(); }

  // Leaves out what others have read meanwhile. Errors: as PagedCache::SkipRead.
  absl::Status SkipRead(PagedCache& cache);

  // How many of the first `wanted` unread tokens one slice may have, as far as cache pages go; at least 1.
  int64_t MostTokens(int64_t wanted) const { return cached_->MostTokens(wanted); }
  // The slice of the first `count` unread tokens; valid until the next call. REQUIRES: count <= MostTokens(count).
  // Errors: INTERNAL if the cache does not have what it promised.
  absl::StatusOr<Slice> NextSlice(int64_t count);
  // That slice was run: the job gets its logits. Errors: as Job::OnRead.
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now);

  // Makes the cache stand where the session will go on, if it can. REQUIRES: the job is complete.
  bool StandAtSessionEnd();

 private:
  std::unique_ptr<Job> job_;
  std::unique_ptr<CachedSequence> cached_;
  int64_t unread_when_begun_ = 0;
};

}  // namespace longshort

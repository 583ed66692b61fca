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

namespace longshort::core {

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
  int64_t MaxTokens(int64_t wanted) const { return cached_->MaxTokens(wanted); }
  // The slice of the first `count` unread tokens; valid until the next call. REQUIRES: count <= MaxTokens(count).
  // Errors: INTERNAL if the cache does not have what it promised.
  absl::StatusOr<models::Slice> NextSlice(int64_t count);
  // That slice was run: the job gets its logits. Errors: as Job::OnRead.
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now);

  // Makes the cache stand where the session will go on, if it can. REQUIRES: the job is complete.
  bool StandAtSessionEnd();

 private:
  std::unique_ptr<Job> job_;
  std::unique_ptr<CachedSequence> cached_;
  int64_t unread_when_begun_ = 0;
};

// Where a job's sequence begins in a worker's cache. The first of these that can be:
// - where it was parked, with its pages;
// - behind those of its first tokens that the cache has rows of, or, if that is further on, so far before what it had
//   read that everything is exact again there (PagedCache::RecomputeFrom);
// - at the first token.
//
// Thread: the one that owns the cache.

// Whether the job can be taken from the queue now. Either there is room for it, or it needs none: it has nothing to
// read, or could never run here.
bool FitsNow(const PagedCache& cache, const Job& job);

// How many tokens a job that does not run would have to read before it generates, or ends, if it entered now. Where
// this is asked of a long prompt again and again, the number is about right (PagedCache::Findable). `worker`: whose
// cache it is.
int64_t TokensToRead(PagedCache& cache, int worker, const Job& job);

// Finds the job its place. Errors: as PagedCache::Begin.
absl::StatusOr<std::unique_ptr<CachedSequence>> EnterCache(PagedCache& cache, const Job& job);

}  // namespace longshort::core

// A running job with its pages.
//
// The cache may have fewer rows than the job has read (its session's pages were evicted, or its worker failed). Then
// the sequence first reads those tokens again to restore their rows, without the job.
#pragma once

#include <algorithm>
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
  // Notifies the job of the cache's position.
  Sequence(std::unique_ptr<Job> job, std::unique_ptr<CachedSequence> cached);

  Job& job() { return *job_; }
  // After either call the sequence is over. The destructor releases pages that were not taken.
  std::unique_ptr<Job> TakeJob() { return std::move(job_); }
  std::unique_ptr<CachedSequence> TakeCached() { return std::move(cached_); }

  // Stream position of the first unread token.
  int64_t position() const { return cached_->position(); }
  // The tokens that the sequence reads next.
  absl::Span<const int32_t> Unread() const;
  // Their number when the sequence began.
  int64_t unread_when_begun() const { return unread_when_begun_; }
  // Whether they are read again, to restore their rows.
  bool catching_up() const { return cached_->position() < job_->stream().read(); }
  // Whether the only unread token is a sampled one.
  bool decoding() const { return !catching_up() && job_->decoding(); }

  // Whether a step that has begun reads some of them. Until it ends, the sequence must not change.
  bool in_step() const { return in_step_; }
  void set_in_step(bool in_step) { in_step_ = in_step; }

  // Skips tokens that other sequences have read meanwhile. Errors: as PagedCache::SkipRead.
  absl::Status SkipRead(PagedCache& cache);

  // How many of the first `wanted` unread tokens one slice may have, given the cache pages; at least 1.
  int64_t MaxTokens(int64_t wanted) const { return cached_->MaxTokens(wanted); }
  // How many of the first `count` unread tokens need at most `logit_rows` rows of logits.
  int64_t TokensWithLogits(int64_t count, int64_t logit_rows) const {
    return catching_up() ? count : count - std::max<int64_t>(0, job_->LogitRows(count) - logit_rows);
  }
  // The slice of the first `count` unread tokens; valid until the next call. REQUIRES: count <= MaxTokens(count).
  // Errors: INTERNAL if the cache has fewer pages than it promised.
  absl::StatusOr<models::Slice> NextSlice(int64_t count);
  // The slice was run. First the cache has its rows, then the job gets the logits, unless the rows were only restored.
  // The job's part may run on another thread, beside those of other sequences. Errors: as Job::OnRead.
  void OnRowsRead(int64_t count) { cached_->OnRead(Unread().first(count)); }
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) {
    return job_->OnRead(count, logits, now);
  }
  // The rows gave unusable logits, so they must not be shared.
  void WithdrawRows() { cached_->Withdraw(); }

  // Moves the cache to the position where the session continues, if it can. REQUIRES: the job is complete.
  bool MoveToSessionEnd();

 private:
  std::unique_ptr<Job> job_;
  std::unique_ptr<CachedSequence> cached_;
  int64_t unread_when_begun_ = 0;
  bool in_step_ = false;
};

// Where a job's sequence begins in a worker's cache: at the first possible one of these positions:
// - where it was parked, with its pages;
// - after its first tokens whose rows are in the cache; or, if that is later, far enough before the tokens it had read
//   that everything is exact again there (PagedCache::RecomputeFrom);
// - at the first token.
//
// Thread: the one that owns the cache.

// Whether the job can be taken from the queue now. Either the cache has room for it, or it needs none: it has nothing
// to read, or could never run here.
bool FitsNow(const PagedCache& cache, const Job& job);

// The number of tokens that a waiting job would have to read before it generates, or ends, if it started now. For a
// long prompt that is checked repeatedly, the number is approximate (PagedCache::Findable). `worker`: the owner of the
// cache.
int64_t TokensToRead(PagedCache& cache, int worker, const Job& job);
// Whether that would hash a long text now, which takes milliseconds.
bool NeedsLongSearch(const PagedCache& cache, int worker, const Job& job);

// Creates the job's sequence in the cache. Errors: as PagedCache::Begin.
absl::StatusOr<std::unique_ptr<CachedSequence>> BeginSequence(PagedCache& cache, const Job& job);

}  // namespace longshort::core

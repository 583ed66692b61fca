#include "core/generation/sequence.h"

#include <algorithm>
#include <vector>

#include "base/status_macros.h"

namespace longshort::core {
namespace {

bool IsParkedIn(const PagedCache& cache, const Job& job) {
  return job.parked_rows.place().has_value() && cache.IsParked(job.parked_rows.place()->id);
}

}  // namespace

Sequence::Sequence(std::unique_ptr<Job> job, std::unique_ptr<CachedSequence> cached)
    : job_(std::move(job)), cached_(std::move(cached)) {
  job_->OnBegun(cached_->position(), cached_->reused_tokens());
  unread_when_begun_ = static_cast<int64_t>(Unread().size());
}

absl::Span<const int32_t> Sequence::Unread() const {
  if (!catching_up()) return job_->Unread();
  const TokenStream& stream = job_->stream();
  return absl::MakeConstSpan(stream.all()).subspan(position(), stream.read() - position());
}

absl::Status Sequence::SkipRead(PagedCache& cache) {
  if (decoding()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const int64_t skipped, cache.SkipRead(*cached_, job_->stream().all(), job_->MaxReused()));
  if (skipped > 0) job_->OnSkipped(position());
  return absl::OkStatus();
}

absl::StatusOr<models::Slice> Sequence::NextSlice(int64_t count) {
  models::Slice slice;
  slice.tokens = Unread().first(count);
  slice.logit_rows = catching_up() ? 0 : job_->LogitRows(count);
  LS_RETURN_IF_ERROR(cached_->FillIn(slice));
  return slice;
}

bool Sequence::MoveToSessionEnd() {
  // The next call reads the last token, because its logits were not needed.
  const int64_t end = job_->SessionTokens() - 1;
  if (position() < end) return false;
  const absl::StatusOr<int64_t> stands = cached_->RollBack(end);
  return stands.ok();
}

bool FitsNow(const PagedCache& cache, const Job& job) {
  return job.complete() || !cache.CheckFits(job.MaxTokens()).ok() || cache.FitsNow(job.MaxTokens());
}

int64_t TokensToRead(PagedCache& cache, int worker, const Job& job) {
  const TokenStream& stream = job.stream();
  if (IsParkedIn(cache, job)) return stream.end() - cache.PositionOf(job.parked_rows.place()->id);
  const int64_t found = cache.Findable(stream.all(), job.MaxReused(), job.parked_rows.SearchIn(worker, cache.id()));
  return stream.end() - std::max(found, cache.RecomputeFrom(stream.read()));
}

bool NeedsLongSearch(const PagedCache& cache, int worker, const Job& job) {
  // Less is hashed within 0.1 ms.
  constexpr int64_t kLong = 1 << 14;  // tokens
  constexpr int64_t kManyBlocks = 64;
  if (job.stream().end() <= kLong || IsParkedIn(cache, job)) return false;
  const PrefixSearch& last = job.parked_rows.SearchIn(worker, cache.id());
  // A repeated search visits about as many blocks as the last one.
  const bool is_long = last.filled < 0 || last.blocks > kManyBlocks;
  return is_long && cache.IsWorthSearching(last);
}

absl::StatusOr<std::unique_ptr<CachedSequence>> BeginSequence(PagedCache& cache, const Job& job) {
  if (IsParkedIn(cache, job)) return cache.Resume(job.parked_rows.place()->id, job.MaxTokens());
  const std::vector<int32_t>& tokens = job.stream().all();
  const int64_t recompute_from = cache.RecomputeFrom(job.stream().read());
  PrefixSearch now;
  if (recompute_from > 0 && cache.Findable(tokens, job.MaxReused(), now) < recompute_from) {
    return cache.BeginAt(recompute_from, job.MaxTokens());
  }
  return cache.Begin(tokens, job.MaxReused(), job.MaxTokens());
}

}  // namespace longshort::core

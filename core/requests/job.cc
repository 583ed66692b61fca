#include "core/requests/job.h"

#include <algorithm>

#include "core/requests/request_context.h"

namespace longshort::core {

std::optional<ParkedId> ParkedRows::TakeOwn(int worker) {
  if (!is_own_ || !IsWith(worker)) return std::nullopt;
  const ParkedId id = place_->id;
  place_.reset();
  return id;
}

void ParkedRows::Release() {
  if (is_own_ && place_.has_value() && caches_ != nullptr) caches_->Release(*place_);
  place_.reset();
  is_own_ = false;
}

PrefixSearch& ParkedRows::SearchIn(int worker, uint64_t cache) const {
  const auto index = static_cast<size_t>(worker);
  if (searches_.size() <= index) searches_.resize(index + 1);
  Search& search = searches_[index];
  if (search.cache != cache) search = {.cache = cache, .last = {}};
  return search.last;
}

absl::Status Job::CheckNotAbandoned(absl::Time now) const {
  return longshort::core::CheckNotAbandoned(context(), now, times.started != absl::InfiniteFuture());
}

void Job::ReleaseResources() {
  parked_rows.Release();
  if (std::optional<SessionStore::Lease>& session = resources.session; session.has_value()) {
    if (session->held() && keeps_partial()) {
      const std::vector<int32_t>& all = stream_.all();
      session->Commit({.tokens = {all.begin(), all.begin() + SessionTokens()}, .partial_from = stream_.given_begin()});
    }
    session.reset();
  }
  resources.tokens = {};
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

}  // namespace longshort::core

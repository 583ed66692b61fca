#include "core/generation/session_mover.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::core {

void WorkerPages::Release(const ParkedPlace& place) {
  const MutexLock lock(mutex_);
  if (workers_ == nullptr) return;
  PostToCache(*workers_, place.worker, [id = place.id](PagedCache* cache) {
    if (cache != nullptr) cache->RemoveParked(id);
  });
}

void WorkerPages::End() {
  const MutexLock lock(mutex_);
  workers_ = nullptr;
}

void SessionMover::Export(const SessionKey& key, std::function<void(absl::StatusOr<SessionArchive>)> done) {
  absl::StatusOr<SessionStore::Lease> opened = sessions_.OpenToRead(key, pages_);
  if (!opened.ok()) return done(opened.status());
  SessionArchive archive{
      .tokens = {opened->tokens().begin(), opened->tokens().end()}, .cache_layout = model_.cache_layout, .cached = {}};
  const std::optional<ParkedPlace> parked = opened->parked();
  if (!parked.has_value()) {
    // Release the session before `done` runs, so that `done` can use it.
    { const SessionStore::Lease given_back = *std::move(opened); }
    return done(std::move(archive));
  }
  // A task must be copyable, and a lease is not. The lease is held while the session's pages are read.
  auto lease = std::make_shared<SessionStore::Lease>(*std::move(opened));
  PostToCache(workers_, parked->worker,
              [id = parked->id, lease = std::move(lease), archive = std::move(archive),
               done = std::move(done)](PagedCache* cache) mutable {
                absl::StatusOr<ParkedPages> pages = absl::NotFoundError("the worker has no cache");
                if (cache != nullptr) pages = cache->Export(id);
                lease.reset();
                if (!pages.ok() && !absl::IsNotFound(pages.status())) return done(pages.status());
                if (pages.ok()) {
                  archive.cache_layout = cache->layout();
                  archive.cached = *std::move(pages);
                }
                done(std::move(archive));
              });
}

void SessionMover::Import(const SessionKey& key, SessionArchive archive, std::function<void(absl::Status)> done) {
  if (absl::Status status = Check(archive); !status.ok()) return done(std::move(status));
  if (!archive.cached.has_value()) {
    return done(sessions_.Import(key, {.tokens = std::move(archive.tokens), .parked = std::nullopt}));
  }
  const auto worker = static_cast<int>(imports_++ % workers_.size());
  PostToCache(workers_, worker,
              [this, key, worker, archive = std::move(archive), done = std::move(done)](PagedCache* cache) mutable {
                // Check first, because the import may evict other sequences' pages.
                absl::Status status = sessions_.CheckImport(key, archive.tokens);
                if (!status.ok()) return done(std::move(status));
                std::optional<ParkedPlace> parked;
                if (cache != nullptr && cache->layout() == archive.cache_layout) {
                  absl::StatusOr<ParkedId> id = cache->Import(*archive.cached, archive.tokens);
                  if (!id.ok() && !absl::IsUnavailable(id.status())) return done(std::move(id).status());
                  if (id.ok()) parked = ParkedPlace{.worker = worker, .id = *id};
                }
                status = sessions_.Import(key, {.tokens = std::move(archive.tokens), .parked = parked}, pages_);
                if (!status.ok() && parked.has_value()) cache->RemoveParked(parked->id);
                done(std::move(status));
              });
}

absl::Status SessionMover::Check(const SessionArchive& archive) const {
  if (archive.tokens.empty()) return absl::DataLossError("the session has no tokens");
  const int64_t vocabulary = model_.vocabulary_size;
  const auto wrong = std::find_if(archive.tokens.begin(), archive.tokens.end(),
                                  [vocabulary](int32_t token) { return token < 0 || token >= vocabulary; });
  if (wrong != archive.tokens.end()) {
    return absl::DataLossError(absl::StrCat("token ", wrong - archive.tokens.begin(), " of the session is ", *wrong,
                                            "; the model has ", vocabulary, " tokens"));
  }
  return absl::OkStatus();
}

}  // namespace longshort::core

// Sessions whose pages are in the caches of an engine's workers: how these are freed, taken out, and brought in.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/generation/language_model_replica.h"
#include "core/schedule/model_worker.h"
#include "core/session/session.h"
#include "core/session/session_store.h"
#include "models/model.h"

namespace longshort::core {

// A store of sessions that several engines share may call it after its engine is gone: then there is nothing to free.
class WorkerPages final : public SessionPages {
 public:
  // All workers must be there when the first session is parked, and until End.
  explicit WorkerPages(ModelWorkers& workers) : workers_(&workers) {}

  void GiveUp(const ParkedPlace& place) override;
  // The workers will be gone.
  void End();

 private:
  std::mutex mutex_;
  ModelWorkers* workers_;  // guarded by mutex_; null after End
};

// Tokens are the store's, which any thread may ask; pages are in the cache of one worker, who reads or writes them
// between two of its steps.
//
// Thread-safe.
class SessionMover final {
 public:
  // The arguments must outlive this, and all workers have ended before one of them goes.
  SessionMover(const models::LanguageModelInfo& model, SessionStore& sessions, std::shared_ptr<SessionPages> pages,
               ModelWorkers& workers)
      : model_(model), sessions_(sessions), pages_(std::move(pages)), workers_(workers) {}

  // As LanguageModelEngine's.
  void Export(const SessionKey& key, std::function<void(absl::StatusOr<SessionArchive>)> done);
  // As LanguageModelEngine's. Pages are left out if the worker whose turn it is has no room for them, no cache at the
  // time, or a cache of another layout: the session's tokens are then read again when it goes on.
  void Import(const SessionKey& key, SessionArchive archive, std::function<void(absl::Status)> done);

 private:
  // Whether its tokens are the model's. Errors: DATA_LOSS.
  absl::Status Check(const SessionArchive& archive) const;

  const models::LanguageModelInfo& model_;
  SessionStore& sessions_;
  const std::shared_ptr<SessionPages> pages_;  // of the workers
  ModelWorkers& workers_;
  std::atomic<uint64_t> imports_ = 0;
};

}  // namespace longshort::core

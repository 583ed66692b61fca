// Frees, exports and imports the pages of sessions in the caches of an engine's workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "core/generation/language_model_replica.h"
#include "core/schedule/model_worker.h"
#include "core/session/session.h"
#include "core/session/session_store.h"
#include "models/model.h"

namespace longshort::core {

// A session store that several engines share may call it after its engine has ended. Then it does nothing.
class WorkerPages final : public SessionPages {
 public:
  // All workers must exist from the first parked session until End.
  explicit WorkerPages(ModelWorkers& workers) : workers_(&workers) {}

  void Release(const ParkedPlace& place) override;
  // Called before the workers are destroyed.
  void End();

 private:
  Mutex mutex_;
  ModelWorkers* workers_ ABSL_GUARDED_BY(mutex_);  // null after End
};

// Any thread may read the tokens in the session store. The pages are in the cache of one worker, whose thread reads or
// writes them between two steps.
//
// Thread-safe.
class SessionMover final {
 public:
  // The arguments must outlive this, and all workers must have ended before any of them is destroyed.
  SessionMover(const models::LanguageModelInfo& model, SessionStore& sessions, std::shared_ptr<SessionPages> pages,
               ModelWorkers& workers)
      : model_(model), sessions_(sessions), pages_(std::move(pages)), workers_(workers) {}

  // As LanguageModelEngine's.
  void Export(const SessionKey& key, std::function<void(absl::StatusOr<SessionArchive>)> done);
  // As LanguageModelEngine's. The pages are dropped if the next worker has no room for them, has no cache at the time,
  // or has a cache of another layout. Then the session's tokens are read again when it continues.
  void Import(const SessionKey& key, SessionArchive archive, std::function<void(absl::Status)> done);

 private:
  // Whether its tokens are valid for the model. Errors: DATA_LOSS.
  absl::Status Check(const SessionArchive& archive) const;

  const models::LanguageModelInfo& model_;
  SessionStore& sessions_;
  const std::shared_ptr<SessionPages> pages_;  // of the workers
  ModelWorkers& workers_;
  std::atomic<uint64_t> imports_ = 0;
};

}  // namespace longshort::core

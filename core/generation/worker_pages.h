// The pages of sessions in the caches of an engine's workers.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/generation/language_model_worker.h"
#include "core/session/session_pages.h"

namespace longshort {

// A store of sessions that several engines share may call it after its engine is gone: then there is nothing to free.
class WorkerPages final : public SessionPages {
 public:
  // All workers must be there when the first session is parked, and until End.
  explicit WorkerPages(const std::vector<std::unique_ptr<LanguageModelWorker>>& workers) : workers_(&workers) {}

  void GiveUp(const ParkedPlace& place) override;
  // The workers will be gone.
  void End();

 private:
  std::mutex mutex_;
  const std::vector<std::unique_ptr<LanguageModelWorker>>* workers_;  // guarded by mutex_; null after End
};

}  // namespace longshort

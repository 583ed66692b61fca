#include "core/generation/worker_pages.h"

namespace longshort {

void WorkerPages::GiveUp(const ParkedPlace& place) {
  const std::lock_guard lock(mutex_);
  if (workers_ == nullptr) return;
  (*workers_)[place.worker]->Post([id = place.id](PagedCache* cache) {
    if (cache != nullptr) cache->Drop(id);
  });
}

void WorkerPages::End() {
  const std::lock_guard lock(mutex_);
  workers_ = nullptr;
}

}  // namespace longshort

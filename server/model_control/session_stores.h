// Session stores, which engines share if they have the same model name and the same weights.
//
// So a model keeps its sessions when it is loaded again because its serving.json changed. A model with other weights
// begins without any.
#pragma once

#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "core/session/session_store.h"

namespace longshort::server {

// Thread: the one that loads models.
class SessionStores {
 public:
  // Makes the observer of a new store, which receives the number of its sessions.
  using MakeObserver = std::function<std::unique_ptr<core::SessionObserver>()>;

  // Returns the store of an engine with this name and fingerprint, or a new one with `options` and an observer.
  // `clock` must outlive it.
  std::shared_ptr<core::SessionStore> Of(const std::string& model, const std::string& fingerprint, const Clock& clock,
                                         const core::SessionStore::Options& options,
                                         const MakeObserver& make_observer) {
    for (auto store = stores_.begin(); store != stores_.end();) {
      store = store->second.expired() ? stores_.erase(store) : std::next(store);
    }
    std::weak_ptr<core::SessionStore>& known = stores_[{model, fingerprint}];
    std::shared_ptr<core::SessionStore> store = known.lock();
    if (store == nullptr) {
      store = std::make_shared<core::SessionStore>(clock, options, make_observer());
      known = store;
    }
    return store;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::weak_ptr<core::SessionStore>> stores_;
};

}  // namespace longshort::server

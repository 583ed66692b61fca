// Which engines share their sessions: those of one model name with the same weights.
//
// So a model that is loaded anew, because its serving.json changed, has the sessions that it had; one of other weights
// begins with none.
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

// Thread: that which loads models.
class SessionStores {
 public:
  // What a new store tells how many sessions it has.
  using MakeObserver = std::function<std::unique_ptr<core::SessionObserver>()>;

  // The store that some engine of this name and fingerprint still has; or a new one, for which `options` and the
  // observer are. `clock` must outlive it.
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

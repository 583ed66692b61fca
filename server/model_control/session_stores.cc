#include "server/model_control/session_stores.h"

#include <iterator>

namespace longshort {

std::shared_ptr<SessionStore> SessionStores::Of(const std::string& model, const std::string& fingerprint,
                                                const Clock& clock, const SessionStore::Options& options,
                                                const MakeObserver& make_observer) {
  for (auto store = stores_.begin(); store != stores_.end();) {
    store = store->second.expired() ? stores_.erase(store) : std::next(store);
  }
  std::weak_ptr<SessionStore>& known = stores_[{model, fingerprint}];
  std::shared_ptr<SessionStore> store = known.lock();
  if (store == nullptr) {
    store = std::make_shared<SessionStore>(clock, options, make_observer());
    known = store;
  }
  return store;
}

}  // namespace longshort

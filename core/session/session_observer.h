// Hears how many sessions a store has, for metrics.
#pragma once

#include <cstdint>

namespace longshort {

class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  // How many sessions there are after a call, and the tokens that they hold. Called with the store locked, one call at
  // a time; must not block, or call the store.
  virtual void OnSessions(int64_t sessions, int64_t tokens) = 0;
};

}  // namespace longshort

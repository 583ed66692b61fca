// Whether several clients call at the same time. A call of the client that called last costs a hash and a load.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longshort::server {

class RecentClients final {
 public:
  // A call of this client begins.
  void Note(std::string_view client) {
    const size_t hash = absl::Hash<std::string_view>()(client) | 1;
    const size_t before = last_.load(std::memory_order_relaxed);
    if (before == hash) return;
    last_.store(hash, std::memory_order_relaxed);
    if (before != 0) changed_.store(absl::ToUnixNanos(MonotonicNow()), std::memory_order_relaxed);
  }

  // Whether calls of more than one client began within the last two seconds.
  bool several(absl::Time now = MonotonicNow()) const {
    return absl::ToUnixNanos(now - absl::Seconds(2)) < changed_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<size_t> last_ = 0;                                        // the client's hash; 0: none has called
  std::atomic<int64_t> changed_ = std::numeric_limits<int64_t>::min();  // when another client than the last one called
};

}  // namespace longshort::server

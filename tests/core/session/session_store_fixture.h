// What the tests of SessionStore share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule/refusal.h"
#include "core/session/session_store.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::core {

inline constexpr absl::Duration kTimeToLive = absl::Minutes(10);

class SessionStoreTest : public testing::Test {
 protected:
  SessionStore::Options Options() const {
    SessionStore::Options options;
    options.time_to_live = kTimeToLive;
    options.session_cost = options.remembered_cost = 0;
    return options;
  }

  // Without room that a client leaves.
  static std::shared_ptr<ClientBudgets> Tokens(int64_t all, int64_t of_client = int64_t{1} << 24) {
    return std::make_shared<ClientBudgets>(std::make_shared<Budget>(all, Budget::Names{"the sessions", "tokens"}),
                                           of_client, Budget::Names{"this client's sessions", "tokens"});
  }

  // A call that ends well and leaves the session with these tokens.
  void Call(SessionStore& store, const SessionKey& key, std::vector<int32_t> tokens) {
    absl::StatusOr<SessionStore::Lease> lease = store.Open(key, false);
    ASSERT_TRUE(lease.ok()) << lease.status();
    lease->Commit({.tokens = std::move(tokens), .parked = {}});
  }

  static std::vector<int32_t> TokensOf(SessionStore& store, const SessionKey& key) {
    const absl::StatusOr<SessionStore::Lease> lease = store.Open(key, true);
    if (!lease.ok()) return {};
    return {lease->tokens().begin(), lease->tokens().end()};
  }

  // The message of the refusal for lack of room; empty if the call is not refused.
  static std::string RefusalOf(SessionStore& store, const SessionKey& key) {
    const absl::Status status = store.Open(key, false).status();
    return absl::IsResourceExhausted(status) ? std::string(status.message()) : "";
  }

  FakeClock clock_;
  SessionStore store_{clock_, Options()};
  const SessionKey key_{.client = "alice", .id = "talk"};
};

}  // namespace longshort::core

#include "server/calls/session_calls.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::server::session_calls_test {

using testing::HasSubstr;

// The engines' key of the owner's session "talk": "client/id".
std::string Known(const std::string& owner, bool authentication) {
  const absl::StatusOr<SessionOwner> read = ReadSessionOwner(owner, authentication);
  if (!read.ok()) return std::string(read.status().message());
  EXPECT_EQ(read->name(), owner);
  const core::SessionKey key = KeyOfSession(*read, "talk");
  const OwnedSession again = OwnedSessionOf(key, authentication);
  EXPECT_EQ(again.owner.name(), owner);
  EXPECT_EQ(again.id, "talk");
  return key.client + " " + key.id;
}

TEST(SessionOwner, IsReadAsItIsWritten) {
  EXPECT_EQ(Known("", false), " talk");
  EXPECT_EQ(Known("alice", false), "alice talk");
  EXPECT_EQ(Known("/alice/", true), "alice talk");
  EXPECT_EQ(Known("/alice/phone", true), "alice phone/talk");
}

TEST(SessionOwner, RejectsTheNameFormOfTheOtherKindOfServer) {
  for (const char* owner : {"/alice/", "/alice/phone", "al ice", "/"}) {
    EXPECT_THAT(Known(owner, false), HasSubstr("since this server has no --token-file")) << owner;
  }
  for (const char* owner : {"", "alice", "alice/phone", "/alice", "//", "//phone", "/alice/phone/", "/alice/a b"}) {
    EXPECT_THAT(Known(owner, true), HasSubstr("since this server has a --token-file")) << owner;
  }
}

}  // namespace longshort::server::session_calls_test

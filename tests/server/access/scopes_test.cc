#include "server/access/scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort::server::scopes_test {

using testing::HasSubstr;

TEST(Scopes, AreReadAsTheyAreListed) {
  ScopeSet scopes;
  ASSERT_TRUE(ReadScopes("observe,infer", &scopes).ok());
  EXPECT_TRUE(scopes.Has(Scope::kInfer));
  EXPECT_TRUE(scopes.Has(Scope::kObserve));
  EXPECT_FALSE(scopes.Has(Scope::kSessions));
  EXPECT_FALSE(scopes.Has(Scope::kManage));
}

TEST(Scopes, WhatIsNoneIsRefusedWithWhatThereIs) {
  for (const char* wrong : {"", "infer,", "infer,infer", "admin", "Infer", "infer, manage"}) {
    ScopeSet scopes;
    const absl::Status status = ReadScopes(wrong, &scopes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(status.message(), HasSubstr("infer, sessions, manage, observe"));
  }
}

}  // namespace longshort::server::scopes_test

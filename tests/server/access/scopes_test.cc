#include "server/access/scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort {
namespace {

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

TEST(Scopes, EachCallNeedsItsOwnAndAnUnknownOneIsForNobody) {
  EXPECT_EQ(AccessOf("GenerateStream")->scope, Scope::kInfer);
  EXPECT_EQ(AccessOf("ListModels")->scope, Scope::kInfer);
  EXPECT_EQ(AccessOf("ExportSession")->scope, Scope::kSessions);
  EXPECT_EQ(AccessOf("UnloadModel")->scope, Scope::kManage);
  EXPECT_EQ(AccessOf("/metrics")->scope, Scope::kObserve);
  EXPECT_FALSE(AccessOf("/metrics")->health);
  EXPECT_FALSE(AccessOf("grpc.reflection.v1alpha.ServerReflection")->health);
  EXPECT_TRUE(AccessOf("grpc.health.v1.Health.Check")->health);
  EXPECT_TRUE(AccessOf("grpc.health.v1.Health.Watch")->health);
  EXPECT_FALSE(AccessOf("Nothing").has_value());
  EXPECT_FALSE(AccessOf("").has_value());
}

}  // namespace
}  // namespace longshort

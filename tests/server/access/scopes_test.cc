#include "server/access/scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort {
namespace {

using testing::AllOf;
using testing::Field;
using testing::HasSubstr;
using testing::Optional;

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
  const auto needs = [](Scope scope, bool health = false) {
    return Optional(AllOf(Field(&RpcAccess::scope, scope), Field(&RpcAccess::health, health)));
  };
  EXPECT_THAT(AccessOf("GenerateStream"), needs(Scope::kInfer));
  EXPECT_THAT(AccessOf("ListModels"), needs(Scope::kInfer));
  EXPECT_THAT(AccessOf("ExportSession"), needs(Scope::kSessions));
  EXPECT_THAT(AccessOf("UnloadModel"), needs(Scope::kManage));
  EXPECT_THAT(AccessOf("/metrics"), needs(Scope::kObserve));
  EXPECT_THAT(AccessOf("grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo"), needs(Scope::kObserve));
  EXPECT_THAT(AccessOf("grpc.health.v1.Health.Check"), needs(Scope::kObserve, true));
  EXPECT_THAT(AccessOf("grpc.health.v1.Health.Watch"), needs(Scope::kObserve, true));
  EXPECT_FALSE(AccessOf("Nothing").has_value());
  EXPECT_FALSE(AccessOf("").has_value());
}

}  // namespace
}  // namespace longshort

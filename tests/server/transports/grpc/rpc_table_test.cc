// Compares the rows of all protocols with the services that they implement.

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/transports/grpc/standard_services.h"

namespace longshort::server::rpc_table_test {

using google::protobuf::DescriptorPool;
using google::protobuf::MethodDescriptor;

class RpcTableTest : public ::testing::Test {
 protected:
  RpcTableTest() {
    for (std::vector<Rpc>& rpcs : std::vector<std::vector<Rpc>>{LongshortV1Rpcs(), OpenInferenceRpcs(),
                                                                HealthRpcs(health_), ReflectionRpcs(reflection_)}) {
      std::move(rpcs.begin(), rpcs.end(), std::back_inserter(rows_));
    }
  }

  static const MethodDescriptor* MethodOf(const Rpc& rpc) {
    return DescriptorPool::generated_pool()->FindMethodByName(absl::StrReplaceAll(rpc.names.method(), {{"/", "."}}));
  }

  Health health_;
  Reflection reflection_;
  std::vector<Rpc> rows_;
};

TEST_F(RpcTableTest, ARowHasTheMessagesAndTheKindOfItsMethod) {
  for (const Rpc& rpc : rows_) {
    const MethodDescriptor* const method = MethodOf(rpc);
    ASSERT_NE(method, nullptr) << rpc.names.method();
    EXPECT_EQ(rpc.request->GetDescriptor(), method->input_type()) << rpc.names.method();
    EXPECT_EQ(rpc.response->GetDescriptor(), method->output_type()) << rpc.names.method();
    const bool reads = rpc.kind == RpcKind::kClientStream || rpc.kind == RpcKind::kBidirectional;
    const bool writes = rpc.kind == RpcKind::kServerStream || rpc.kind == RpcKind::kBidirectional;
    EXPECT_EQ(reads, method->client_streaming()) << rpc.names.method();
    EXPECT_EQ(writes, method->server_streaming()) << rpc.names.method();
  }
}

TEST_F(RpcTableTest, EveryMethodOfAServiceHasOneRow) {
  std::map<const google::protobuf::ServiceDescriptor*, std::set<const MethodDescriptor*>> served;
  for (const Rpc& rpc : rows_) {
    ASSERT_NE(MethodOf(rpc), nullptr) << rpc.names.method();
    EXPECT_TRUE(served[MethodOf(rpc)->service()].insert(MethodOf(rpc)).second) << rpc.names.method();
  }
  EXPECT_EQ(served.size(), 7U);  // three of longshort.v1, the Open Inference
                                 // Protocol, health, reflection twice
  for (const auto& [service, methods] : served) {
    EXPECT_EQ(static_cast<int>(methods.size()), service->method_count()) << service->full_name();
  }
}

TEST_F(RpcTableTest, EveryRpcNeedsTheScopeOfItsEffect) {
  std::map<std::string, std::set<std::string>> needed;
  for (const Rpc& rpc : rows_) {
    const RpcAccess access = rpc.names.access();
    const char* const scopes[] = {"infer", "sessions", "manage", "observe"};
    needed[access.health ? "health" : scopes[static_cast<int>(access.scope)]].insert(rpc.names.rpc());
    EXPECT_EQ(rpc.names.observes(), access.scope == Scope::kObserve) << rpc.names.rpc();
  }
  using Names = std::set<std::string>;
  EXPECT_EQ(needed["infer"], (Names{"Generate", "GenerateStream", "ScoreText", "ScoreTexts", "ClassifyImage", "Embed",
                                    "Tokenize", "ListModels", "GetModel", "ModelInfer", "ModelStreamInfer",
                                    "ServerMetadata", "ModelMetadata", "ModelConfig", "ModelStatistics",
                                    "RepositoryIndex", "SharedMemory", "TraceSetting", "LogSettings"}));
  EXPECT_EQ(needed["sessions"], (Names{"ListSessions", "CloseSession", "ExportSession", "ImportSession"}));
  EXPECT_EQ(needed["manage"], (Names{"LoadModel", "UnloadModel", "RepositoryModelLoad", "RepositoryModelUnload"}));
  // Public, unless --protect-health is set.
  EXPECT_EQ(needed["health"], (Names{"ServerLive", "ServerReady", "ModelReady", "grpc.health.v1.Health.Check",
                                     "grpc.health.v1.Health.Watch"}));
  EXPECT_EQ(needed["observe"],
            (Names{"grpc.health.v1.Health.List", "grpc.reflection.v1.ServerReflection.ServerReflectionInfo",
                   "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo"}));
}

}  // namespace longshort::server::rpc_table_test

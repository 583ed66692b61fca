#include "server/transports/grpc/grpc_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::grpc_service_test {

// Holds the statuses of calls back until they may be sent.
class HeldStatuses final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* /*info*/) override {
    return new Holder(*this);
  }
  absl::Notification ready;
  absl::Notification may_be_sent;

 private:
  class Holder final : public grpc::experimental::Interceptor {
   public:
    explicit Holder(HeldStatuses& all) : all_(all) {}
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
        all_.ready.Notify();
        all_.may_be_sent.WaitForNotification();
      }
      methods->Proceed();
    }

   private:
    HeldStatuses& all_;
  };
};

class GrpcServiceTest : public ServingFixture {
 protected:
  // The status of a call of a service whose messages may take so much memory.
  // `check` runs while gRPC has the status and has not sent it.
  template <typename Check>
  grpc::StatusCode StatusOf(int64_t memory, Check check) {
    Serve(RegistryOf(std::make_unique<ScriptedEngine>()));
    environment_->message_memory = MessageBudgets(memory);
    GrpcService service(*environment_, LongshortV1Rpcs());
    auto held = std::make_unique<HeldStatuses>();
    HeldStatuses& statuses = *held;
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
    interceptors.push_back(std::move(held));
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    service.AddTo(builder);
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    const auto stub = v1::Inference::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
    grpc::StatusCode code = grpc::StatusCode::OK;
    std::thread client([&] {
      grpc::ClientContext context;
      v1::TokenizeResponse response;
      code = stub->Tokenize(&context, v1::TokenizeRequest(), &response).error_code();
    });
    statuses.ready.WaitForNotification();
    check(service.counts().begun());
    statuses.may_be_sent.Notify();
    client.join();
    server->Shutdown();
    EXPECT_EQ(service.counts().begun(), 0);
    return code;
  }
};

TEST_F(GrpcServiceTest, ACallIsCountedUntilItsStatusWasSent) {
  EXPECT_EQ(StatusOf(1 << 20, [](int64_t begun) { EXPECT_EQ(begun, 1); }), grpc::StatusCode::INVALID_ARGUMENT);
}

// No budget has the memory of a refused call, so it counts as one that gRPC has and no service has begun.
TEST_F(GrpcServiceTest, ARefusedCallIsNotCounted) {
  EXPECT_EQ(StatusOf(1 << 10, [](int64_t begun) { EXPECT_EQ(begun, 0); }), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcServiceTest, SmallMessagesOfAClientWithManyCallsAreReadInTheQueue) {
  Serve(RegistryOf(std::make_unique<ScriptedEngine>()));
  environment_->trusts_client_ids = true;
  absl::Notification blocked, unblock;
  environment_->work->Submit({.client = "another"}, core::FairPool::Timed([&] {
                               blocked.Notify();
                               unblock.WaitForNotification();
                             }));
  blocked.WaitForNotification();
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ScoreTextsRequest, v1::ScoreTextsResponse>> stream;
  };
  const std::shared_ptr<Budget> budget = environment_->message_memory->Of("many");
  std::vector<Stream> streams(70);
  int64_t of_one = 0;
  for (Stream& one : streams) {
    one.context.AddMetadata("x-client-id", "many");
    one.stream = stub_->ScoreTexts(&one.context);
    while (of_one == 0) of_one = budget->held();
  }
  while (budget->held() < 70 * of_one) std::this_thread::yield();
  const auto tokenize = [this](const std::string& client) {
    grpc::ClientContext context;
    context.AddMetadata("x-client-id", client);
    v1::TokenizeResponse response;
    return stub_->Tokenize(&context, v1::TokenizeRequest(), &response).error_code();
  };
  std::thread waiting([&] { EXPECT_EQ(tokenize("many"), grpc::StatusCode::INVALID_ARGUMENT); });
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (environment_->work->size() < 2 && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(environment_->work->size(), 2) << "the call waits";
  EXPECT_EQ(tokenize("few"), grpc::StatusCode::INVALID_ARGUMENT) << "of another client: at once";
  unblock.Notify();
  waiting.join();
  for (Stream& one : streams) one.context.TryCancel();
  for (Stream& one : streams) one.stream->Finish();
}

}  // namespace longshort::server::grpc_service_test

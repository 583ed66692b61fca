// The services over a real connection on loopback.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "server/lifecycle/grpc_endpoint.h"

namespace longshort::server {

class ServingFixture : public ::testing::Test {
 protected:
  // Serves these models from now on.
  void Serve(std::unique_ptr<core::ModelRegistry> models,
             RequestLimits limits = {.prompt_tokens = 1000, .generate_tokens = 1000}) {
    models_ = std::move(models);
    manager_ = std::make_unique<ModelManager>(*models_, metrics_, log_);
    ASSERT_TRUE(deliveries_.Start().ok());
    environment_ = std::unique_ptr<CallEnvironment>(new CallEnvironment{.models = *models_,
                                                                        .manager = *manager_,
                                                                        .metrics = metrics_,
                                                                        .log = log_,
                                                                        .gate = gate_,
                                                                        .deliveries = deliveries_,
                                                                        .limits = limits,
                                                                        .keepalive_interval = absl::Milliseconds(50),
                                                                        .slow_reader_timeout = absl::Seconds(30)});
    ASSERT_TRUE(memory_->Start().ok());
    environment_->answers = memory_->answers();
    ServerOptions options;
    options.listen.port = 0;
    auto listener = ConnectionListener::Bind(options.listen);
    ASSERT_TRUE(listener.ok()) << listener.status();
    auto endpoint = GrpcEndpoint::Start(options, MachineLimits(), *environment_, *std::move(listener));
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    stub_ = v1::Inference::NewStub(Connect({}));
  }

  std::unique_ptr<CallMemory> MemoryWithPatience(absl::Duration patience, int64_t answer_bytes = int64_t{64} << 20) {
    return std::make_unique<CallMemory>(RequestMemory{.answers = answer_bytes}, patience, metrics_.families());
  }
  // REQUIRES: no call was made yet.
  void SetPatience(absl::Duration patience, int64_t answer_bytes = int64_t{64} << 20) {
    environment_->slow_reader_timeout = patience;
    auto memory = MemoryWithPatience(patience, answer_bytes);
    ASSERT_TRUE(memory->Start().ok());
    environment_->answers = memory->answers();
    memory_ = std::move(memory);
  }

  // A connection that takes 16 KiB of a stream beyond what its client has read: gRPC's own window grows to megabytes.
  std::shared_ptr<grpc::Channel> ConnectWithSmallWindow() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 10);
    return Connect(arguments);
  }

  std::shared_ptr<grpc::Channel> Connect(const grpc::ChannelArguments& arguments) {
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", endpoint_->address().port),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  std::unique_ptr<core::ModelRegistry> models_;
  ServerMetrics metrics_{{1.0}};
  Logger log_{LogFormat::kText, LogLevel::kError};
  CallGate gate_;
  std::unique_ptr<ModelManager> manager_;
  std::unique_ptr<CallEnvironment> environment_;
  DeliveryThreads deliveries_{1};
  // The account of the calls' memory. A client may leave an answer unread for a short time only if a test says so.
  std::unique_ptr<CallMemory> memory_ = MemoryWithPatience(absl::Seconds(30));
  std::unique_ptr<GrpcEndpoint> endpoint_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

}  // namespace longshort::server

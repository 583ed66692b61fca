// A connection to a Longshort server: the calls of longshort.v1, with absl::Status for errors.
//
//   Client client({.server = "127.0.0.1:8500"});
//   v1::TokenizeRequest request;
//   request.mutable_input()->set_text("cat");
//   absl::StatusOr<v1::TokenizeResponse> response = client.Tokenize(request);
//
// Errors: the server's status as it came, code and message. UNAVAILABLE also means that nothing answers at the address,
// DEADLINE_EXCEEDED that `timeout` ran out, CANCELLED that Cancel was called.
//
// Thread: one call at a time; Cancel may come from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"

namespace longshort {

class Client final {
 public:
  struct Options {
    // host:port, or any other address that gRPC takes. The connection is not encrypted.
    std::string server = "127.0.0.1:8500";
    // How long one call may take; streams, from their start to their last message.
    absl::Duration timeout = absl::InfiniteDuration();
  };

  // Connects with the first call, not here.
  explicit Client(const Options& options);
  // Over a channel that exists already (in-process servers, other credentials); `options.server` is not used.
  Client(const std::shared_ptr<grpc::Channel>& channel, const Options& options);

  absl::StatusOr<v1::ScoreTextResponse> ScoreText(const v1::ScoreTextRequest& request);
  absl::StatusOr<v1::GenerateResponse> Generate(const v1::GenerateRequest& request);
  absl::StatusOr<v1::TokenizeResponse> Tokenize(const v1::TokenizeRequest& request);
  absl::StatusOr<v1::ListModelsResponse> ListModels();
  absl::StatusOr<v1::Model> GetModel(const v1::GetModelRequest& request);

  // Calls `on_message` for each message as it arrives, in the caller's thread; returns when the stream has ended.
  absl::Status GenerateStream(const v1::GenerateRequest& request,
                              absl::FunctionRef<void(const v1::GenerateStreamResponse&)> on_message);

  // Ends the running call with CANCELLED. Returns whether there was one.
  bool Cancel();

 private:
  // Registers a call's context for Cancel while it runs.
  class RunningCall;

  template <typename Response, typename Call>
  absl::StatusOr<Response> Unary(Call call);

  const absl::Duration timeout_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Models::Stub> models_;

  std::mutex mutex_;
  grpc::ClientContext* running_ = nullptr;  // guarded by mutex_
};

}  // namespace longshort

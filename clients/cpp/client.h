// A connection to a Longshort server: the calls of longshort.v1, with absl::Status for errors.
//
//   Client client({.server = "127.0.0.1:8500"});
//   v1::TokenizeRequest request;
//   request.mutable_input()->set_text("cat");
//   absl::StatusOr<v1::TokenizeResponse> response = client.Tokenize(request);
//
// Errors: the server's status as it came, code and message. UNAVAILABLE also means that nothing answers at the address,
// DEADLINE_EXCEEDED that `timeout` ran out, CANCELLED that Cancel was called. gRPC itself tries a call again that the
// server did not take (see kServiceConfig), within `timeout`.
//
// Thread: any number of calls at once, from any threads, over one connection; Cancel may come from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/connection_options.h"
#include "grpcpp/grpcpp.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"
#include "longshort/v1/sessions.grpc.pb.h"

namespace longshort::client {

// How long the server wants to be left alone, if it said so with the status.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

class Client final {
 public:
  struct Options {
    // host:port, or any other address that gRPC takes.
    std::string server = "127.0.0.1:8500";
    // How long one call may take; streams, from their start to their last message.
    absl::Duration timeout = absl::InfiniteDuration();
    // Who asks (metadata x-client-id), in printable ASCII: whose sessions these are, and whose share of the server.
    // Empty: nobody says.
    std::string client_id = {};
    // Encryption, and who proves to be who; unencrypted by default.
    ClientCredentials credentials = {};
  };

  // Connects with the first call, not here.
  explicit Client(const Options& options);
  // Over a channel that exists already (in-process servers, other credentials); `options.server` is not used.
  Client(const std::shared_ptr<grpc::Channel>& channel, const Options& options);

  absl::StatusOr<v1::ScoreTextResponse> ScoreText(const v1::ScoreTextRequest& request);
  absl::StatusOr<v1::ClassifyImageResponse> ClassifyImage(const v1::ClassifyImageRequest& request);
  absl::StatusOr<v1::GenerateResponse> Generate(const v1::GenerateRequest& request);
  absl::StatusOr<v1::TokenizeResponse> Tokenize(const v1::TokenizeRequest& request);
  absl::StatusOr<v1::ListModelsResponse> ListModels();
  absl::StatusOr<v1::Model> GetModel(const v1::ModelSelector& model);

  // Calls `on_message` for each message as it arrives, in the caller's thread; returns when the stream has ended.
  absl::Status GenerateStream(const v1::GenerateRequest& request,
                              absl::FunctionRef<void(const v1::GenerateStreamResponse&)> on_message);

  // Fills in the next document of a stream (input, second_input); false if there are no more.
  using NextDocument = absl::FunctionRef<bool(v1::ScoreTextsRequest&)>;
  using OnAnswer = absl::FunctionRef<void(const v1::ScoreTextsResponse&)>;

  // Scores any number of documents over one stream:
  //
  //   size_t next = 0;
  //   absl::Status status = client.ScoreTexts(
  //       options, model.limits().window(),
  //       [&](v1::ScoreTextsRequest& request) {
  //         if (next == texts.size()) return false;
  //         request.mutable_input()->set_text(texts[next++]);
  //         return true;
  //       },
  //       [&](const v1::ScoreTextsResponse& answer) { results.push_back(answer); });
  //
  // `on_answer` is called in the caller's thread, for the documents in their order. At most `window` documents were
  // taken from `next` and not yet given to `on_answer`: what the server works on and what both sides remember is
  // bounded, however many there are. `next` is called in a thread of its own, so it may wait for its input while
  // answers arrive. Returns when the stream has ended and `next` has returned. Documents that could not be scored are
  // answers with an error; a status that is not OK ended the stream.
  absl::Status ScoreTexts(const v1::ScoreTextsOptions& options, int32_t window, NextDocument next, OnAnswer on_answer);

  absl::StatusOr<v1::ListSessionsResponse> ListSessions(const v1::ListSessionsRequest& request);

  struct SessionEnd {
    // Whose session it is; none: the caller's own.
    std::optional<std::string> owner = {};
    // Refuse (FAILED_PRECONDITION) unless it holds so many.
    std::optional<int64_t> expected_tokens = {};
    // Whether it goes on at another server, which callers are then told.
    bool moved = false;
  };
  absl::Status EndSession(const v1::ModelSelector& model, const std::string& session_id, const SessionEnd& end);

  // Fills in the next part of an exported session; false if there are no more.
  using NextPart = absl::FunctionRef<bool(v1::SessionPart&)>;
  // Calls `take` once, in the caller's thread, with what waits for the next part. A session is whole if `take` has
  // asked until there were no more, and this returns OK. Where it did not, the call is cancelled, which is no error.
  absl::Status ExportSession(const v1::ExportSessionRequest& request, absl::FunctionRef<void(NextPart)> take);
  // Sends the parts, as long as the server takes them.
  absl::StatusOr<v1::ImportSessionResponse> ImportSession(const v1::ImportBeginning& beginning, NextPart next);

  // Ends all running calls with CANCELLED, and every later one as it begins. Returns whether one was running. A
  // ScoreTexts that has ended and only waits for `next` is no running call.
  bool Cancel();

 private:
  // A call's context, with what all calls say in their metadata; registered for Cancel while it runs.
  class RunningCall;

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Ask(Stub& stub, grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                               const Request& request, const std::string& session_id = {});

  const absl::Duration timeout_;
  const std::string client_id_;
  const ClientCredentials credentials_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Models::Stub> models_;
  std::unique_ptr<v1::Sessions::Stub> sessions_;

  std::mutex mutex_;
  std::unordered_set<grpc::ClientContext*> running_;  // guarded by mutex_
  bool cancelled_ = false;                            // guarded by mutex_
};

// Whether a call ended so because Cancel was called, and not because the server said so.
bool CancelledHere(const absl::Status& status);

}  // namespace longshort::client

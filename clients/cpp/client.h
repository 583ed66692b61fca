// A connection to a Longshort server. It has the calls of longshort.v1, with absl::Status for errors.
//
//   Client client({.server = "127.0.0.1:8500"});
//   v1::TokenizeRequest request;
//   request.mutable_input()->set_text("cat");
//   absl::StatusOr<v1::TokenizeResponse> response = client.Tokenize(request);
//
// Errors: the server's status, unchanged. Also UNAVAILABLE if no server listens at the address, DEADLINE_EXCEEDED if
// `timeout` has passed, CANCELLED if Cancel was called. Calls that the server did not accept, or whose connection was
// lost, are made again within `timeout` (running_call.h), except for exports and imports, whose parts can be read only
// once. A server that no call has reached yet, and that refuses the connection, is not waited for.
//
// Thread-safe: all calls share one connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "clients/cpp/connection_options.h"
#include "grpcpp/grpcpp.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"
#include "longshort/v1/sessions.grpc.pb.h"

namespace longshort::client {

enum class Repeat;  // running_call.h

// A document, or a pair, to score.
struct Document {
  std::string name;
  // The input, and the second input of a pair; or why it cannot be sent.
  absl::StatusOr<v1::ScoreTextsRequest> item;
};

class Client final {
 public:
  struct Options {
    // Address of the server: host:port, or any other address that gRPC takes.
    std::string server = "127.0.0.1:8500";
    // Deadline of each call. A stream must have sent its last message by then.
    absl::Duration timeout = absl::InfiniteDuration();
    // Metadata x-client-id, in printable ASCII, which owns sessions and gets a fair share of the server. Not sent if
    // empty.
    std::string client_id = {};
    // TLS and tokens; unencrypted by default.
    ClientCredentials credentials = {};
  };

  // Connects lazily, with the first call.
  explicit Client(const Options& options);

  absl::StatusOr<v1::ScoreTextResponse> ScoreText(const v1::ScoreTextRequest& request);
  absl::StatusOr<v1::ClassifyImageResponse> ClassifyImage(const v1::ClassifyImageRequest& request);
  absl::StatusOr<v1::EmbedResponse> Embed(const v1::EmbedRequest& request);
  absl::StatusOr<v1::GenerateResponse> Generate(const v1::GenerateRequest& request);
  absl::StatusOr<v1::TokenizeResponse> Tokenize(const v1::TokenizeRequest& request);
  absl::StatusOr<v1::ListModelsResponse> ListModels();
  absl::StatusOr<v1::Model> GetModel(const v1::ModelSelector& model);

  // Calls `on_message` for each message as it arrives, in the caller's thread; returns when the stream has ended. The
  // call is not made again after its first message.
  absl::Status GenerateStream(const v1::GenerateRequest& request,
                              absl::FunctionRef<void(const v1::GenerateStreamResponse&)> on_message);

  // Returns the next document of a stream; nullopt at the end. A document whose item is an error is not sent: the error
  // is its answer.
  using NextDocument = absl::FunctionRef<std::optional<Document>()>;
  using OnAnswer = absl::FunctionRef<void(const std::string& name, const v1::ScoreTextsResponse&)>;
  // Makes a running NextDocument return, and later ones return at once.
  using StopReading = absl::FunctionRef<void()>;

  // Scores any number of documents over one stream:
  //
  //   absl::Status status = client.ScoreTexts(
  //       options, model.limits().window(), [&] { return source.Next(); },
  //       [&](const std::string& name, const v1::ScoreTextsResponse& answer) { results.emplace_back(name, answer); });
  //
  // Calls `on_answer` once for each document, in their order, in one thread at a time. At most `window` documents are
  // read and not yet answered, which bounds the memory of both sides. Calls `next` in another thread, so it may block
  // while answers arrive. A document that cannot be scored is an answer with an error. If the connection is lost or the
  // server refuses, the documents without an answer are sent again, to the same server or another.
  //
  // Returns when all documents are answered or the stream has failed, and `next` has returned; `stop` is called before.
  // Errors: why not all documents have an answer.
  absl::Status ScoreTexts(
      const v1::ScoreTextsOptions& options, int32_t window, NextDocument next, OnAnswer on_answer,
      StopReading stop = [] {});

  absl::StatusOr<v1::ListSessionsResponse> ListSessions(const v1::ListSessionsRequest& request);
  // Also returns OK if a repeated call finds no session: the first one, whose answer was lost, has closed it.
  absl::Status CloseSession(const v1::CloseSessionRequest& request);

  // Fills in the next part of an exported session; false at the end.
  using NextPart = absl::FunctionRef<bool(v1::SessionPart&)>;
  // Calls `take` once, in the caller's thread, with a blocking reader of parts. The session is complete if the reader
  // returned false and this returns OK. If `take` returns earlier, the call is cancelled and this returns OK.
  absl::Status ExportSession(const v1::ExportSessionRequest& request, absl::FunctionRef<void(NextPart)> take);
  // Sends parts until the server stops accepting them.
  absl::StatusOr<v1::ImportSessionResponse> ImportSession(const v1::ImportBeginning& beginning, NextPart next);

  // Ends all running and all later calls with CANCELLED. Returns whether one was running. A ScoreTexts whose stream has
  // ended, and which only waits for `next`, does not count.
  bool Cancel();

 private:
  // A call's context with the common metadata; registered for Cancel while the call runs.
  class RunningCall;
  class DocumentStream;

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Ask(Stub& stub, grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                               const Request& request, Repeat repeat, const std::string& session_id = {});
  absl::Time Deadline() const { return absl::Now() + timeout_; }
  // Waits before the next attempt. Errors: CANCELLED, with the failure of the last one, if Cancel was called meanwhile.
  absl::Status Wait(absl::Duration delay, const absl::Status& failure);

  const absl::Duration timeout_;
  const std::string client_id_;
  const ClientCredentials credentials_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Models::Stub> models_;
  std::unique_ptr<v1::Sessions::Stub> sessions_;

  std::atomic<bool> reached_ = false;  // a call did not end with UNAVAILABLE
  Mutex mutex_;
  std::unordered_set<grpc::ClientContext*> running_ ABSL_GUARDED_BY(mutex_);
  absl::Notification cancelled_;
};

// Selects the version that GetModel described, even if a newer one is loaded meanwhile.
v1::ModelSelector SelectorOf(const v1::Model& model);

// Whether Client::Cancel, not the server, ended the call with this status.
bool CancelledHere(const absl::Status& status);

}  // namespace longshort::client

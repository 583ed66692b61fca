#include "clients/cpp/client.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace longshort::client {
namespace {

// Pings keep load balancers from forgetting a silent connection, some after 15 s, and detect one that is dead. They are
// sent in silent calls, and between calls.
constexpr int kPingAfterMilliseconds = 10 * 1000;
constexpr int kPingTimeoutMilliseconds = 20 * 1000;

constexpr char kCancelledHere[] = "the client cancelled the call";

// Whether a status without the server's trailers means a lost connection: a proxy whose server died ends a stream that
// has begun by RST_STREAM, for which gRPC reports INTERNAL, CANCELLED or UNKNOWN.
bool IsOfTransport(const grpc::Status& status, const grpc::ClientContext& context) {
  if (context.GetServerTrailingMetadata().count("x-request-id") > 0) return false;
  if (status.error_code() == grpc::StatusCode::INTERNAL) return true;
  return (status.error_code() == grpc::StatusCode::CANCELLED || status.error_code() == grpc::StatusCode::UNKNOWN) &&
         absl::StrContains(status.error_message(), "RST_STREAM");
}

// The status of a call that has ended.
absl::Status ToAbslStatus(const grpc::Status& status, const grpc::ClientContext& context) {
  if (IsOfTransport(status, context)) {
    return absl::UnavailableError(absl::StrCat("the connection to the server was lost: ", status.error_message()));
  }
  // Both enums use the canonical codes.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  // gRPC's message if this program cancelled the call.
  if (code == absl::StatusCode::kCancelled && status.error_message() == "CANCELLED") {
    return absl::CancelledError(kCancelledHere);
  }
  absl::Status result(code, status.error_message());
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  if (pushback == trailers.end()) return result;
  return WithRetryAfter(result, absl::string_view(pushback->second.data(), pushback->second.size()));
}

std::shared_ptr<grpc::Channel> Connect(const Client::Options& options) {
  grpc::ChannelArguments arguments;
  // Log-probabilities of a long document make large answers; the client requested them.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetUserAgentPrefix("longshort-client");
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  return options.credentials.Connect(options.server, arguments);
}

// How a request may be repeated that may continue a session. A lost answer may have changed the session; then a second
// try is safe only if the request says how many tokens it expects.
template <typename Request>
Repeat RepeatOf(const Request& request) {
  const bool is_safe = !request.has_session() || request.session().has_expected_tokens();
  return is_safe ? Repeat::kAlways : Repeat::kIfRefused;
}

// gRPC aborts on invalid metadata. Without it, the server's error explains what is wrong with the id.
bool CanBeMetadata(const std::string& value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

class Client::RunningCall final {
 public:
  // `session_id`: the request's session, or empty. Proxies use it to route the calls of a session to one server.
  RunningCall(Client& client, absl::Time deadline, const std::string& session_id = {}) : client_(client) {
    if (deadline != absl::InfiniteFuture()) context_.set_deadline(absl::ToChronoTime(deadline));
    if (!client_.client_id_.empty()) context_.AddMetadata("x-client-id", client_.client_id_);
    if (CanBeMetadata(session_id)) context_.AddMetadata("x-session-id", session_id);
    client_.credentials_.Authorize(context_);
    const MutexLock lock(client_.mutex_);
    client_.running_.insert(&context_);
    if (client_.cancelled_.HasBeenNotified()) context_.TryCancel();
  }
  ~RunningCall() { Leave(); }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

  // Unregisters the call: Cancel then ignores it.
  void Leave() {
    const MutexLock lock(client_.mutex_);
    if (client_.running_.erase(&context_) > 0) was_cancelled_ = client_.cancelled_.HasBeenNotified();
  }

  // The status of the ended call. Returns CANCELLED after Cancel even if the call failed first, so that the caller does
  // not handle that failure.
  absl::Status StatusOf(const grpc::Status& status) {
    Leave();
    if (!status.ok() && was_cancelled_) return absl::CancelledError(kCancelledHere);
    return ToAbslStatus(status, context_);
  }

 private:
  Client& client_;
  grpc::ClientContext context_;
  bool was_cancelled_ = false;  // before it left
};

Client::Client(const Options& options) : Client(Connect(options), options) {}

Client::Client(const std::shared_ptr<grpc::Channel>& channel, const Options& options)
    : timeout_(options.timeout),
      client_id_(options.client_id),
      credentials_(options.credentials),
      inference_(v1::Inference::NewStub(channel)),
      models_(v1::Models::NewStub(channel)),
      sessions_(v1::Sessions::NewStub(channel)) {}

bool Client::Wait(absl::Duration delay) { return !cancelled_.WaitForNotificationWithTimeout(delay); }

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Client::Ask(Stub& stub,
                                     grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                                     const Request& request, Repeat repeat, const std::string& session_id) {
  Attempts attempts(repeat, Deadline());
  for (;;) {
    RunningCall running(*this, attempts.deadline(), session_id);
    attempts.WasAlive();
    Response response;
    const grpc::Status status = (stub.*call)(running.context(), request, &response);
    if (status.ok()) return response;
    LS_ASSIGN_OR_RETURN(const absl::Duration delay, attempts.DelayAfter(running.StatusOf(status)));
    if (!Wait(delay)) return absl::CancelledError(kCancelledHere);
  }
}

absl::StatusOr<v1::ScoreTextResponse> Client::ScoreText(const v1::ScoreTextRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::ScoreText, request, RepeatOf(request), request.session().id());
}

absl::StatusOr<v1::ClassifyImageResponse> Client::ClassifyImage(const v1::ClassifyImageRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::ClassifyImage, request, Repeat::kAlways);
}

absl::StatusOr<v1::EmbedResponse> Client::Embed(const v1::EmbedRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Embed, request, Repeat::kAlways);
}

absl::StatusOr<v1::GenerateResponse> Client::Generate(const v1::GenerateRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Generate, request, RepeatOf(request), request.session().id());
}

absl::StatusOr<v1::TokenizeResponse> Client::Tokenize(const v1::TokenizeRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Tokenize, request, Repeat::kAlways);
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels() {
  return Ask(*models_, &v1::Models::Stub::ListModels, v1::ListModelsRequest(), Repeat::kNever);
}

absl::StatusOr<v1::Model> Client::GetModel(const v1::ModelSelector& model) {
  v1::GetModelRequest request;
  *request.mutable_model() = model;
  return Ask(*models_, &v1::Models::Stub::GetModel, request, Repeat::kNever);
}

absl::Status Client::GenerateStream(const v1::GenerateRequest& request,
                                    absl::FunctionRef<void(const v1::GenerateStreamResponse&)> on_message) {
  Attempts attempts(RepeatOf(request), Deadline());
  for (;;) {
    RunningCall running(*this, attempts.deadline(), request.session().id());
    attempts.WasAlive();
    const auto reader = inference_->GenerateStream(running.context(), request);
    v1::GenerateStreamResponse message;
    bool has_begun = false;
    for (; reader->Read(&message); has_begun = true) on_message(message);
    absl::Status status = running.StatusOf(reader->Finish());
    if (status.ok() || has_begun) return status;
    LS_ASSIGN_OR_RETURN(const absl::Duration delay, attempts.DelayAfter(status));
    if (!Wait(delay)) return absl::CancelledError(kCancelledHere);
  }
}

// The documents of a stream, which may take several attempts: each sends those that were not answered yet. One thread
// reads them for all attempts, since it may wait long for the next one.
class Client::DocumentStream final {
 public:
  DocumentStream(Client& client, int32_t window, NextDocument next, OnAnswer on_answer)
      : client_(client), window_(static_cast<uint64_t>(window)), next_(next), on_answer_(on_answer) {}

  // Waits for a running call of `next`.
  ~DocumentStream() {
    const MutexLock lock(mutex_);
    given_up_ = true;
    changed_.NotifyAll();
  }

  absl::Status StartReading() {
    return reader_.Start("the thread that reads documents", [this] { ReadDocuments(); });
  }

  // Whether every document was read and answered.
  bool IsDone() {
    const MutexLock lock(mutex_);
    return all_read_ && unanswered_.empty();
  }

  // Waits until a document is unanswered. Returns false if none will be.
  bool AwaitUnanswered() {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_read_ || !unanswered_.empty(); });
    return !unanswered_.empty();
  }

  // Makes an attempt. Sends `options` with its first document, and pins the model of the first answer in them.
  absl::Status Run(v1::ScoreTextsOptions& options, Attempts& attempts) {
    attempts.WasAlive();
    RunningCall running(client_, attempts.deadline());
    const auto stream = client_.inference_->ScoreTexts(running.context());
    SetLost(false);
    Thread sender;
    const absl::Status started = sender.Start("the thread that sends documents", [&, options] {
      std::optional<v1::ScoreTextsOptions> beginning = options;
      v1::ScoreTextsRequest request;
      for (uint64_t id = 0; Take(id, request); id = request.id() + 1) {
        if (beginning.has_value()) *request.mutable_options() = *std::exchange(beginning, std::nullopt);
        // A failed write does not always mean a failed call, but a failed Read does. Until then a window of documents
        // at most is written.
        stream->Write(request);
      }
      stream->WritesDone();
    });
    if (!started.ok()) running.context()->TryCancel();
    for (v1::ScoreTextsResponse answer; stream->Read(&answer);) {
      attempts.WasAlive();
      if (answer.has_keep_alive()) continue;
      attempts.Succeeded();
      if (answer.has_model()) *options.mutable_model() = answer.model();
      Keep(std::move(answer));
      while (const std::optional<v1::ScoreTextsResponse> next = NextToShow()) on_answer_(*next);
      answer.Clear();
    }
    SetLost(true);
    running.Leave();
    sender.Join();
    const grpc::Status status = stream->Finish();
    return started.ok() ? running.StatusOf(status) : started;
  }

 private:
  void ReadDocuments() {
    for (uint64_t id = 0;; ++id) {
      {
        const MutexLock lock(mutex_);
        changed_.Wait(mutex_,
                      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return given_up_ || id < shown_ + window_; });
        if (given_up_) return;
      }
      v1::ScoreTextsRequest request;
      const bool is_read = next_(request);
      request.set_id(id);
      const MutexLock lock(mutex_);
      if (is_read) unanswered_.emplace(id, std::move(request));
      all_read_ = !is_read;
      changed_.NotifyAll();
      if (all_read_) return;
    }
  }

  // Waits for the next unanswered document from `id` on. Returns false at the end of the documents or of the attempt.
  bool Take(uint64_t id, v1::ScoreTextsRequest& request) {
    const MutexLock lock(mutex_);
    auto next = unanswered_.end();
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      next = unanswered_.lower_bound(id);
      return lost_ || all_read_ || next != unanswered_.end();
    });
    if (lost_ || next == unanswered_.end()) return false;
    request = next->second;
    return true;
  }

  void SetLost(bool lost) {
    const MutexLock lock(mutex_);
    lost_ = lost;
    changed_.NotifyAll();
  }

  // Keeps the document's first answer.
  void Keep(v1::ScoreTextsResponse answer) {
    const MutexLock lock(mutex_);
    if (unanswered_.erase(answer.id()) > 0) early_.emplace(answer.id(), std::move(answer));
  }

  // Takes the answer of the first document that was not shown, if it has arrived.
  std::optional<v1::ScoreTextsResponse> NextToShow() {
    const MutexLock lock(mutex_);
    auto next = early_.extract(shown_);
    if (next.empty()) return std::nullopt;
    ++shown_;
    changed_.NotifyAll();
    return std::move(next.mapped());
  }

  Client& client_;
  const uint64_t window_;
  const NextDocument next_;
  const OnAnswer on_answer_;

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<uint64_t, v1::ScoreTextsRequest> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, v1::ScoreTextsResponse> early_ ABSL_GUARDED_BY(mutex_);  // not shown: an earlier one is missing
  uint64_t shown_ ABSL_GUARDED_BY(mutex_) = 0;
  bool all_read_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;      // the running attempt
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;  // all attempts
  Thread reader_;                                  // last: it uses the other members
};

absl::Status Client::ScoreTexts(const v1::ScoreTextsOptions& options, int32_t window, NextDocument next,
                                OnAnswer on_answer, StopReading stop) {
  v1::ScoreTextsOptions pinned = options;
  pinned.set_keep_alives(true);
  Attempts attempts(Repeat::kAlways, Deadline());
  DocumentStream documents(*this, window, next, on_answer);
  const absl::Cleanup end_reading = stop;
  LS_RETURN_IF_ERROR(documents.StartReading());
  for (;;) {
    absl::Status status = documents.Run(pinned, attempts);
    if (status.ok() || documents.IsDone()) return status;
    LS_ASSIGN_OR_RETURN(const absl::Duration delay, attempts.DelayAfter(status));
    if (!documents.AwaitUnanswered()) return status;
    if (!Wait(delay)) return absl::CancelledError(kCancelledHere);
  }
}

absl::StatusOr<v1::ListSessionsResponse> Client::ListSessions(const v1::ListSessionsRequest& request) {
  return Ask(*sessions_, &v1::Sessions::Stub::ListSessions, request, Repeat::kNever);
}

absl::Status Client::EndSession(const v1::ModelSelector& model, const std::string& session_id, const SessionEnd& end) {
  v1::CloseSessionRequest request;
  *request.mutable_model() = model;
  request.set_session_id(session_id);
  if (end.owner.has_value()) request.set_owner(*end.owner);
  if (end.expected_tokens.has_value()) request.set_expected_tokens(*end.expected_tokens);
  request.set_moved(end.moved);
  return Ask(*sessions_, &v1::Sessions::Stub::CloseSession, request, Repeat::kNever, session_id).status();
}

absl::Status Client::ExportSession(const v1::ExportSessionRequest& request, absl::FunctionRef<void(NextPart)> take) {
  RunningCall running(*this, Deadline(), request.session_id());
  const auto reader = sessions_->ExportSession(running.context(), request);
  bool is_at_end = false;
  take([&](v1::SessionPart& part) { return !(is_at_end = is_at_end || !reader->Read(&part)); });
  if (is_at_end) return running.StatusOf(reader->Finish());
  running.context()->TryCancel();
  for (v1::SessionPart part; reader->Read(&part);) continue;
  reader->Finish();
  return absl::OkStatus();
}

absl::StatusOr<v1::ImportSessionResponse> Client::ImportSession(const v1::ImportBeginning& beginning, NextPart next) {
  RunningCall running(*this, Deadline(), beginning.session_id());
  v1::ImportSessionResponse response;
  const auto writer = sessions_->ImportSession(running.context(), &response);
  v1::ImportSessionRequest request;
  *request.mutable_beginning() = beginning;
  while (writer->Write(request) && next(*request.mutable_part())) continue;
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return running.StatusOf(status);
  return response;
}

bool Client::Cancel() {
  const MutexLock lock(mutex_);
  for (grpc::ClientContext* context : running_) context->TryCancel();
  if (!cancelled_.HasBeenNotified()) cancelled_.Notify();
  return !running_.empty();
}

bool CancelledHere(const absl::Status& status) {
  return absl::IsCancelled(status) && status.message() == kCancelledHere;
}

}  // namespace longshort::client

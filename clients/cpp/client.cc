#include "clients/cpp/client.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <semaphore>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/thread.h"

namespace longshort::client {
namespace {

constexpr int kPingAfterMilliseconds = 5 * 60 * 1000;
constexpr int kPingTimeoutMilliseconds = 20 * 1000;

constexpr char kCancelledHere[] = "the client cancelled the call";

// Payload with the milliseconds of RetryAfter.
constexpr char kRetryAfter[] = "longshort/retry-after-milliseconds";

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
  if (const auto pushback = trailers.find("grpc-retry-pushback-ms"); pushback != trailers.end()) {
    result.SetPayload(kRetryAfter, absl::Cord(absl::string_view(pushback->second.data(), pushback->second.size())));
  }
  return result;
}

// gRPC retries idempotent calls until the first message of the answer. A full server sends the delay
// (grpc-retry-pushback-ms). Generate may continue a session, so it is not retried once the server may have started it.
// Calls of Models and Sessions are not retried: their callers do that. Nor is ScoreTexts: when gRPC 1.51 retries a call
// while a write is in flight, it loses messages or crashes. Client::ScoreTexts retries by itself.
constexpr char kServiceConfig[] = R"({"methodConfig": [
  {"name": [{"service": "longshort.v1.Inference", "method": "ScoreText"},
            {"service": "longshort.v1.Inference", "method": "ClassifyImage"},
            {"service": "longshort.v1.Inference", "method": "Embed"},
            {"service": "longshort.v1.Inference", "method": "Tokenize"}],
   "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.3s", "maxBackoff": "5s", "backoffMultiplier": 2,
                   "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}},
  {"name": [{"service": "longshort.v1.Inference", "method": "Generate"},
            {"service": "longshort.v1.Inference", "method": "GenerateStream"}],
   "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.3s", "maxBackoff": "5s", "backoffMultiplier": 2,
                   "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]})";

constexpr int kMaxAttempts = 4;
constexpr absl::Duration kInitialBackoff = absl::Milliseconds(300);
// A connection that is lost after such a silence, and again after one within a fifth of it, is probably closed by a
// proxy because it is idle. Then another attempt would end in the same way.
constexpr absl::Duration kLongSilence = absl::Seconds(5);

std::shared_ptr<grpc::Channel> Connect(const Client::Options& options) {
  grpc::ChannelArguments arguments;
  // Log-probabilities of a long document make large answers; the client requested them.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetUserAgentPrefix("longshort-client");
  arguments.SetServiceConfigJSON(kServiceConfig);
  // Keepalive detects a dead server during a long call. Servers tolerate pings at this interval.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMilliseconds);
  return options.credentials.Connect(options.server, arguments);
}

// gRPC aborts on invalid metadata. Without it, the server's error explains what is wrong with the id.
bool CanBeMetadata(const std::string& value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryAfter);
  int64_t milliseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &milliseconds) || milliseconds < 0)
    return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

namespace {

// Whether a connection was lost after it had been established.
bool IsLostConnection(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  constexpr absl::string_view kLost[] = {
      "reset",    "RST_STREAM",       "connection to the server was lost", "ocket closed", "Broken pipe",
      "watchdog", "End of TCP stream"};
  return std::any_of(std::begin(kLost), std::end(kLost),
                     [&](absl::string_view why) { return absl::StrContains(status.message(), why); });
}

// The delay before attempt `attempt` + 1 of a call that failed before its first answer; nullopt if it must not be
// retried.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, int attempt) {
  if (attempt == kMaxAttempts || !(absl::IsUnavailable(status) || absl::IsResourceExhausted(status)))
    return std::nullopt;
  if (status.GetPayload(kRetryAfter).has_value()) return RetryAfter(status);
  absl::BitGen random;
  return kInitialBackoff * (1 << (attempt - 1)) * absl::Uniform(random, 0.8, 1.2);
}

}  // namespace

class Client::RunningCall final {
 public:
  // `session_id`: the request's session, or empty. Proxies use it to route the calls of a session to one server.
  explicit RunningCall(Client& client, const std::string& session_id = {}) : client_(client) {
    if (client.timeout_ != absl::InfiniteDuration()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + client.timeout_));
    }
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

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Client::Ask(Stub& stub,
                                     grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                                     const Request& request, const std::string& session_id) {
  RunningCall running(*this, session_id);
  Response response;
  const grpc::Status status = (stub.*call)(running.context(), request, &response);
  if (!status.ok()) return running.StatusOf(status);
  return response;
}

absl::StatusOr<v1::ScoreTextResponse> Client::ScoreText(const v1::ScoreTextRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::ScoreText, request, request.session().id());
}

absl::StatusOr<v1::ClassifyImageResponse> Client::ClassifyImage(const v1::ClassifyImageRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::ClassifyImage, request);
}

absl::StatusOr<v1::EmbedResponse> Client::Embed(const v1::EmbedRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Embed, request);
}

absl::StatusOr<v1::GenerateResponse> Client::Generate(const v1::GenerateRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Generate, request, request.session().id());
}

absl::StatusOr<v1::TokenizeResponse> Client::Tokenize(const v1::TokenizeRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Tokenize, request);
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels() {
  return Ask(*models_, &v1::Models::Stub::ListModels, v1::ListModelsRequest());
}

absl::StatusOr<v1::Model> Client::GetModel(const v1::ModelSelector& model) {
  v1::GetModelRequest request;
  *request.mutable_model() = model;
  return Ask(*models_, &v1::Models::Stub::GetModel, request);
}

absl::Status Client::GenerateStream(const v1::GenerateRequest& request,
                                    absl::FunctionRef<void(const v1::GenerateStreamResponse&)> on_message) {
  RunningCall running(*this, request.session().id());
  const auto reader = inference_->GenerateStream(running.context(), request);
  v1::GenerateStreamResponse message;
  while (reader->Read(&message)) on_message(message);
  return running.StatusOf(reader->Finish());
}

// An attempt at a stream of documents, and what the next attempt needs.
class Client::DocumentStream final {
 public:
  DocumentStream(Client& client, int32_t window, NextDocument next, OnAnswer on_answer)
      : client_(client), window_(window), next_(next), on_answer_(on_answer) {}

  bool answered() const { return answered_; }
  // When the last attempt began, or received its last message.
  absl::Time alive() const { return alive_; }

  // Sends `options` with the first document.
  absl::Status Run(const v1::ScoreTextsOptions& options, absl::Time deadline) {
    alive_ = absl::Now();
    RunningCall running(client_);
    if (deadline != absl::InfiniteFuture()) running.context()->set_deadline(absl::ToChronoTime(deadline));
    const auto stream = client_.inference_->ScoreTexts(running.context());
    std::counting_semaphore<> places(window_);  // one for each document in flight
    std::atomic<bool> ended = false;
    Thread sender;
    const absl::Status started = sender.Start("the thread that sends documents", [&] {
      v1::ScoreTextsRequest request;
      *request.mutable_options() = options;
      request.mutable_options()->set_keep_alives(true);
      for (uint64_t id = 0;; ++id) {
        places.acquire();
        if (ended) return;
        if (!Next(id, request)) break;
        request.set_id(id);
        // A failed write does not always mean a failed call (gRPC may send a call again that no server has seen), but
        // a failed Read does. Until then a window of documents at most is written.
        stream->Write(request);
        request.Clear();
      }
      stream->WritesDone();
    });
    if (!started.ok()) running.context()->TryCancel();
    std::map<uint64_t, v1::ScoreTextsResponse> waiting;  // answers that arrived early
    uint64_t next_id = 0;
    for (v1::ScoreTextsResponse answer; stream->Read(&answer);) {
      alive_ = absl::Now();
      if (answer.has_keep_alive()) continue;
      answered_ = true;
      waiting.emplace(answer.id(), std::move(answer));
      for (auto first = waiting.find(next_id); first != waiting.end(); first = waiting.find(++next_id)) {
        places.release();
        on_answer_(first->second);
        waiting.erase(first);
      }
      answer.Clear();
    }
    ended = true;
    places.release();
    running.Leave();
    sender.Join();
    const grpc::Status status = stream->Finish();
    return started.ok() ? running.StatusOf(status) : started;
  }

 private:
  // Fills in document `id`. Returns false at the end.
  bool Next(uint64_t id, v1::ScoreTextsRequest& request) {
    if (id < read_.size()) {
      request = read_[id];
      return true;
    }
    if (all_read_) return false;
    all_read_ = !next_(request);
    if (all_read_) return false;
    if (answered_) {
      read_.clear();
    } else {
      read_.push_back(request);
    }
    return true;
  }

  Client& client_;
  const int32_t window_;
  const NextDocument next_;
  const OnAnswer on_answer_;
  std::atomic<bool> answered_ = false;
  absl::Time alive_;
  // Used by the thread that sends, and between attempts.
  std::vector<v1::ScoreTextsRequest> read_;  // before the first answer
  bool all_read_ = false;
};

absl::Status Client::ScoreTexts(const v1::ScoreTextsOptions& options, int32_t window, NextDocument next,
                                OnAnswer on_answer) {
  const absl::Time deadline = absl::Now() + timeout_;
  DocumentStream documents(*this, window, next, on_answer);
  absl::Duration last_silence;
  for (int attempt = 1;; ++attempt) {
    absl::Status status = documents.Run(options, deadline);
    const absl::Duration silence = IsLostConnection(status) ? absl::Now() - documents.alive() : absl::ZeroDuration();
    if (std::min(silence, last_silence) >= kLongSilence &&
        absl::AbsDuration(silence - last_silence) <= std::max(silence, last_silence) / 5 && !documents.answered()) {
      return absl::UnavailableError(absl::StrCat(status.message(), "; no message came for ",
                                                 absl::FormatDuration(absl::Floor(silence, absl::Seconds(1))),
                                                 " before that, as in the attempt before: a proxy or load balancer "
                                                 "probably closes idle connections. Raise its "
                                                 "idle timeout, or set the server's --ping-interval and "
                                                 "--keepalive-interval below it"));
    }
    last_silence = silence;
    const std::optional<absl::Duration> delay = RetryDelay(status, attempt);
    if (documents.answered() || !delay.has_value() || absl::Now() + *delay >= deadline) return status;
    if (cancelled_.WaitForNotificationWithTimeout(*delay)) return absl::CancelledError(kCancelledHere);
  }
}

absl::StatusOr<v1::ListSessionsResponse> Client::ListSessions(const v1::ListSessionsRequest& request) {
  return Ask(*sessions_, &v1::Sessions::Stub::ListSessions, request);
}

absl::Status Client::EndSession(const v1::ModelSelector& model, const std::string& session_id, const SessionEnd& end) {
  v1::CloseSessionRequest request;
  *request.mutable_model() = model;
  request.set_session_id(session_id);
  if (end.owner.has_value()) request.set_owner(*end.owner);
  if (end.expected_tokens.has_value()) request.set_expected_tokens(*end.expected_tokens);
  request.set_moved(end.moved);
  return Ask(*sessions_, &v1::Sessions::Stub::CloseSession, request, session_id).status();
}

absl::Status Client::ExportSession(const v1::ExportSessionRequest& request, absl::FunctionRef<void(NextPart)> take) {
  RunningCall running(*this, request.session_id());
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
  RunningCall running(*this, beginning.session_id());
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

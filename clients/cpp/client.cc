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
#include "clients/cpp/failures.h"

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

absl::Status Client::Wait(absl::Duration delay, const absl::Status& failure) {
  if (!cancelled_.WaitForNotificationWithTimeout(delay)) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat(kCancelledHere, ", which had failed before: ", failure.message()));
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Client::Ask(Stub& stub,
                                     grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                                     const Request& request, Repeat repeat, const std::string& session_id) {
  Attempts attempts(repeat, Deadline());
  for (;;) {
    RunningCall running(*this, attempts.deadline(), session_id);
    attempts.WasAlive();
    Response response;
    const absl::Status status = running.StatusOf((stub.*call)(running.context(), request, &response));
    if (status.ok()) return response;
    LS_ASSIGN_OR_RETURN(const absl::Duration delay, attempts.DelayAfter(status));
    LS_RETURN_IF_ERROR(Wait(delay, status));
  }
}

absl::StatusOr<v1::ScoreTextResponse> Client::ScoreText(const v1::ScoreTextRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::ScoreText, request, RepeatOf(request), request.session().id());
}

absl::StatusOr<v1::ClassifyImageResponse> Client::ClassifyImage(const v1::ClassifyImageRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::ClassifyImage, request);
}

absl::StatusOr<v1::EmbedResponse> Client::Embed(const v1::EmbedRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Embed, request);
}

absl::StatusOr<v1::GenerateResponse> Client::Generate(const v1::GenerateRequest& request) {
  return Ask(*inference_, &v1::Inference::Stub::Generate, request, RepeatOf(request), request.session().id());
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
    LS_RETURN_IF_ERROR(Wait(delay, status));
  }
}

// The documents of a stream, which may take several attempts: each sends those that have no answer yet. One thread
// reads them for all attempts, since it may wait long for the next one.
class Client::DocumentStream final {
 public:
  DocumentStream(Client& client, v1::ScoreTextsOptions options, int32_t window, NextDocument next, OnAnswer on_answer)
      : client_(client),
        window_(static_cast<size_t>(window)),
        next_(next),
        on_answer_(on_answer),
        attempts_(Repeat::kAlways, client.Deadline()),
        options_(std::move(options)) {
    options_.set_keep_alives(true);
  }

  absl::Status Run(StopReading stop) {
    Thread reader;
    const absl::Cleanup end_reading = [&] {
      {
        const MutexLock lock(mutex_);
        given_up_ = true;
        changed_.NotifyAll();
      }
      stop();
    };
    LS_RETURN_IF_ERROR(reader.Start("the thread that reads documents", [this] { ReadDocuments(); }));
    for (;;) {
      absl::Status status = Attempt();
      absl::Duration delay;
      {
        const MutexLock lock(mutex_);
        lost_ = false;
        if (all_read_ && documents_.empty()) return absl::OkStatus();  // whatever the stream's status is
        if (status.ok()) {
          status = absl::InternalError(absl::StrCat("the server did not answer ", documents_.size(), " documents"));
        }
        LS_ASSIGN_OR_RETURN(delay, attempts_.DelayAfter(status));
        changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_read_ || !documents_.empty(); });
        if (documents_.empty()) return absl::OkStatus();
      }
      LS_RETURN_IF_ERROR(client_.Wait(delay, status));
    }
  }

 private:
  // A document that was read, and its answer if an earlier one has none.
  struct Unshown {
    std::string name;
    v1::ScoreTextsRequest request;
    std::optional<v1::ScoreTextsResponse> answer;
  };

  void ReadDocuments() {
    for (uint64_t id = 0;; ++id) {
      {
        const MutexLock lock(mutex_);
        changed_.Wait(mutex_,
                      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return given_up_ || documents_.size() < window_; });
        if (given_up_) return;
      }
      std::optional<Document> document = next_();
      const MutexLock lock(mutex_);
      if (given_up_) return;
      changed_.NotifyAll();
      all_read_ = !document.has_value();
      if (all_read_) return;
      Unshown& read = documents_[id];
      read.name = std::move(document->name);
      if (document->item.ok()) {
        read.request = *std::move(document->item);
        read.request.set_id(id);
      } else {
        *read.answer.emplace().mutable_error() = MakeItemError(document->item.status());
        ShowFirst();
      }
    }
  }

  // Sends the documents that have no answer over one stream, and receives answers until it ends.
  absl::Status Attempt() {
    attempts_.WasAlive();
    RunningCall running(client_, attempts_.deadline());
    const auto stream = client_.inference_->ScoreTexts(running.context());
    Thread sender;
    const absl::Status started = sender.Start("the thread that sends documents", [&, options = options_] {
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
      attempts_.WasAlive();
      if (answer.has_keep_alive()) continue;
      attempts_.Succeeded();
      if (answer.has_model()) *options_.mutable_model() = answer.model();
      const MutexLock lock(mutex_);
      if (const auto answered = documents_.find(answer.id()); answered != documents_.end()) {
        answered->second.answer = std::exchange(answer, {});
        ShowFirst();
      }
    }
    {
      const MutexLock lock(mutex_);
      lost_ = true;
      changed_.NotifyAll();
    }
    running.Leave();
    sender.Join();
    const grpc::Status status = stream->Finish();
    return started.ok() ? running.StatusOf(status) : started;
  }

  // Waits for the next document without an answer, from `id` on. Returns false at the end of the documents or of the
  // attempt.
  bool Take(uint64_t id, v1::ScoreTextsRequest& request) {
    const MutexLock lock(mutex_);
    auto next = documents_.end();
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      next = std::find_if(documents_.lower_bound(id), documents_.end(),
                          [](const auto& document) { return !document.second.answer.has_value(); });
      return lost_ || all_read_ || next != documents_.end();
    });
    if (lost_ || next == documents_.end()) return false;
    request = next->second.request;
    return true;
  }

  // Shows the answers that wait for no earlier one.
  void ShowFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!documents_.empty() && documents_.begin()->second.answer.has_value()) {
      const auto shown = documents_.extract(documents_.begin());
      on_answer_(shown.mapped().name, *shown.mapped().answer);
    }
    changed_.NotifyAll();
  }

  Client& client_;
  const size_t window_;
  const NextDocument next_;
  const OnAnswer on_answer_;
  // Only the caller's thread uses these two.
  Attempts attempts_;
  v1::ScoreTextsOptions options_;  // for the next attempt, with the model of the last answer

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<uint64_t, Unshown> documents_ ABSL_GUARDED_BY(mutex_);  // by id, which is the place from 0
  bool all_read_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;      // the running attempt
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;  // all attempts
};

absl::Status Client::ScoreTexts(const v1::ScoreTextsOptions& options, int32_t window, NextDocument next,
                                OnAnswer on_answer, StopReading stop) {
  return DocumentStream(*this, options, window, next, on_answer).Run(stop);
}

absl::StatusOr<v1::ListSessionsResponse> Client::ListSessions(const v1::ListSessionsRequest& request) {
  return Ask(*sessions_, &v1::Sessions::Stub::ListSessions, request);
}

absl::Status Client::CloseSession(const v1::CloseSessionRequest& request) {
  return Ask(*sessions_, &v1::Sessions::Stub::CloseSession, request, Repeat::kAlways, request.session_id()).status();
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

v1::ModelSelector SelectorOf(const v1::Model& model) {
  v1::ModelSelector selector;
  selector.set_name(model.name());
  selector.set_version(model.version());
  return selector;
}

bool CancelledHere(const absl::Status& status) {
  return absl::IsCancelled(status) && absl::StartsWith(status.message(), kCancelledHere);
}

}  // namespace longshort::client

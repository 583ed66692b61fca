#include "clients/cpp/client.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/running_call.h"

namespace longshort::client {
namespace {

// Pings keep load balancers from forgetting a silent connection, some after 15 s, and detect one that is dead. They are
// sent in silent calls, and between calls.
constexpr int kPingAfterMilliseconds = 10 * 1000;
constexpr int kPingTimeoutMilliseconds = 20 * 1000;

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

// Returns how a request that may continue a session may be repeated. A lost answer may have changed the session; then a
// second try is safe only if the request says how many tokens it expects.
template <typename Request>
Repeat RepeatOf(const Request& request) {
  const bool is_safe = !request.has_session() || request.session().has_expected_tokens();
  return is_safe ? Repeat::kAlways : Repeat::kIfRefused;
}

}  // namespace

Client::Client(const Options& options)
    : timeout_(options.timeout), client_id_(options.client_id), credentials_(options.credentials) {
  const std::shared_ptr<grpc::Channel> channel = Connect(options);
  inference_ = v1::Inference::NewStub(channel);
  models_ = v1::Models::NewStub(channel);
  sessions_ = v1::Sessions::NewStub(channel);
}

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
    if (attempts.IsDone(status)) return response;
    LS_ASSIGN_OR_RETURN(const absl::Duration delay, attempts.DelayAfter(status));
    LS_RETURN_IF_ERROR(Wait(delay, status));
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
  return Ask(*models_, &v1::Models::Stub::ListModels, v1::ListModelsRequest(), Repeat::kAlways);
}

absl::StatusOr<v1::Model> Client::GetModel(const v1::ModelSelector& model) {
  v1::GetModelRequest request;
  *request.mutable_model() = model;
  return Ask(*models_, &v1::Models::Stub::GetModel, request, Repeat::kAlways);
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

absl::StatusOr<v1::ListSessionsResponse> Client::ListSessions(const v1::ListSessionsRequest& request) {
  return Ask(*sessions_, &v1::Sessions::Stub::ListSessions, request, Repeat::kAlways);
}

absl::Status Client::CloseSession(const v1::CloseSessionRequest& request) {
  return Ask(*sessions_, &v1::Sessions::Stub::CloseSession, request, Repeat::kUntilGone, request.session_id()).status();
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

}  // namespace longshort::client

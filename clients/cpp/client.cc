#include "clients/cpp/client.h"

#include <utility>

namespace longshort {
namespace {

absl::Status ToAbslStatus(const grpc::Status& status) {
  // Both follow the same canonical codes.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

std::shared_ptr<grpc::Channel> Connect(const std::string& server) {
  grpc::ChannelArguments arguments;
  // The client asked for the answer, so it takes one of any size: log-probabilities of a long document are many.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetUserAgentPrefix("longshort-client");
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

class Client::RunningCall final {
 public:
  explicit RunningCall(Client& client) : client_(client) {
    if (client.timeout_ != absl::InfiniteDuration()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + client.timeout_));
    }
    const std::lock_guard lock(client_.mutex_);
    client_.running_ = &context_;
  }
  ~RunningCall() {
    const std::lock_guard lock(client_.mutex_);
    client_.running_ = nullptr;
  }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

 private:
  Client& client_;
  grpc::ClientContext context_;
};

Client::Client(const Options& options) : Client(Connect(options.server), options) {}

Client::Client(const std::shared_ptr<grpc::Channel>& channel, const Options& options)
    : timeout_(options.timeout), inference_(v1::Inference::NewStub(channel)), models_(v1::Models::NewStub(channel)) {}

template <typename Response, typename Call>
absl::StatusOr<Response> Client::Unary(Call call) {
  RunningCall running(*this);
  Response response;
  const grpc::Status status = call(running.context(), &response);
  if (!status.ok()) return ToAbslStatus(status);
  return response;
}

absl::StatusOr<v1::ScoreTextResponse> Client::ScoreText(const v1::ScoreTextRequest& request) {
  return Unary<v1::ScoreTextResponse>([&](grpc::ClientContext* context, v1::ScoreTextResponse* response) {
    return inference_->ScoreText(context, request, response);
  });
}

absl::StatusOr<v1::GenerateResponse> Client::Generate(const v1::GenerateRequest& request) {
  return Unary<v1::GenerateResponse>([&](grpc::ClientContext* context, v1::GenerateResponse* response) {
    return inference_->Generate(context, request, response);
  });
}

absl::StatusOr<v1::TokenizeResponse> Client::Tokenize(const v1::TokenizeRequest& request) {
  return Unary<v1::TokenizeResponse>([&](grpc::ClientContext* context, v1::TokenizeResponse* response) {
    return inference_->Tokenize(context, request, response);
  });
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels() {
  return Unary<v1::ListModelsResponse>([&](grpc::ClientContext* context, v1::ListModelsResponse* response) {
    return models_->ListModels(context, v1::ListModelsRequest(), response);
  });
}

absl::StatusOr<v1::Model> Client::GetModel(const v1::GetModelRequest& request) {
  return Unary<v1::Model>(
      [&](grpc::ClientContext* context, v1::Model* response) { return models_->GetModel(context, request, response); });
}

absl::Status Client::GenerateStream(const v1::GenerateRequest& request,
                                    absl::FunctionRef<void(const v1::GenerateStreamResponse&)> on_message) {
  RunningCall running(*this);
  const std::unique_ptr<grpc::ClientReader<v1::GenerateStreamResponse>> reader =
      inference_->GenerateStream(running.context(), request);
  v1::GenerateStreamResponse message;
  while (reader->Read(&message)) on_message(message);
  return ToAbslStatus(reader->Finish());
}

bool Client::Cancel() {
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr) return false;
  running_->TryCancel();
  return true;
}

}  // namespace longshort

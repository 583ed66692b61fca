#include "tests/clients/fake_server.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longshort {

FakeServer::FakeServer() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::Inference::Service*>(this));
  builder.RegisterService(static_cast<v1::Models::Service*>(this));
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

grpc::Status FakeServer::ScoreText(grpc::ServerContext* /*context*/, const v1::ScoreTextRequest* request,
                                   v1::ScoreTextResponse* response) {
  score_request = *request;
  *response = score;
  return status;
}

grpc::Status FakeServer::Generate(grpc::ServerContext* /*context*/, const v1::GenerateRequest* request,
                                  v1::GenerateResponse* response) {
  generate_request = *request;
  *response = generation;
  return status;
}

grpc::Status FakeServer::GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                                        grpc::ServerWriter<v1::GenerateStreamResponse>* writer) {
  generate_request = *request;
  for (const v1::GenerateStreamResponse& message : stream) writer->Write(message);
  while (stream_hangs && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  return status;
}

grpc::Status FakeServer::Tokenize(grpc::ServerContext* /*context*/, const v1::TokenizeRequest* request,
                                  v1::TokenizeResponse* response) {
  tokenize_request = *request;
  *response = tokens;
  return status;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext* /*context*/, const v1::ListModelsRequest* /*request*/,
                                    v1::ListModelsResponse* response) {
  response->mutable_models()->Assign(models.begin(), models.end());
  return status;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext* /*context*/, const v1::GetModelRequest* request,
                                  v1::Model* response) {
  get_model_request = *request;
  if (models.empty()) return {grpc::StatusCode::NOT_FOUND, "model.name: there is no model"};
  *response = models.front();
  return grpc::Status::OK;
}

}  // namespace longshort

// A server of longshort.v1 in this process that answers what a test puts into it and keeps what it was asked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"

namespace longshort {

class FakeServer final : public v1::Inference::Service, public v1::Models::Service {
 public:
  // Listens on a free port of the loopback address.
  FakeServer();
  ~FakeServer() override;

  // 127.0.0.1:port.
  const std::string& address() const { return address_; }

  // Set before the call. Every call ends with `status`, streams after their messages.
  grpc::Status status;
  v1::ScoreTextResponse score;
  v1::GenerateResponse generation;
  std::vector<v1::GenerateStreamResponse> stream;
  v1::TokenizeResponse tokens;
  std::vector<v1::Model> models;
  // Calls of GenerateStream send their messages and then wait until they are cancelled.
  bool stream_hangs = false;

  // Read after the call.
  v1::ScoreTextRequest score_request;
  v1::GenerateRequest generate_request;
  v1::TokenizeRequest tokenize_request;
  v1::GetModelRequest get_model_request;

 private:
  grpc::Status ScoreText(grpc::ServerContext* context, const v1::ScoreTextRequest* request,
                         v1::ScoreTextResponse* response) override;
  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        v1::GenerateResponse* response) override;
  grpc::Status GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                              grpc::ServerWriter<v1::GenerateStreamResponse>* writer) override;
  grpc::Status Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request, v1::Model* response) override;

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace longshort

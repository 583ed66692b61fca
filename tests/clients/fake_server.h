// A server of longshort.v1 in this process that answers what a test puts into it and keeps what it was asked.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "grpcpp/grpcpp.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"
#include "longshort/v1/sessions.grpc.pb.h"

namespace longshort::client {

class FakeServer final : public v1::Inference::Service, public v1::Models::Service, public v1::Sessions::Service {
 public:
  // Listens on a free port of the loopback address.
  FakeServer();
  ~FakeServer() override;

  // The statuses of all fake servers have no trailers from now on, until the next one is made, as if a proxy had ended
  // the calls.
  static void ActAsProxyOfALostServer();

  // 127.0.0.1:port.
  const std::string& address() const { return address_; }

  // Set before the call. Every call ends with `status`, streams after their messages.
  grpc::Status status;
  v1::ScoreTextResponse score;
  v1::GenerateResponse generation;
  std::vector<v1::GenerateStreamResponse> stream;
  v1::TokenizeResponse tokens;
  std::vector<v1::Model> models;
  std::vector<v1::ModelFailure> failures;
  // Answers one image of ClassifyImage; every call ends with `status`. Called from several threads.
  std::function<v1::ImageResult(const v1::Image&)> classify;
  // Answers a call of Embed. Called from several threads.
  std::function<grpc::Status(const v1::EmbedRequest&, v1::EmbedResponse&)> embed;
  // Answers one document of ScoreTexts, whose id the answer gets. Called from one thread.
  std::function<v1::ScoreTextsResponse(const v1::ScoreTextsRequest&)> score_document;
  // ScoreTexts answers this many documents at a time, the last one first: answers out of order, and a client that sends
  // no further document before an answer would hang.
  size_t documents_in_work = 1;
  // ScoreTexts answers the first document only once it may, and others meanwhile.
  bool keeps_first_document = false;
  absl::Notification first_document_may_go;
  // Each ends one call of ScoreTexts or CloseSession before anything else, the front one the first call.
  std::deque<grpc::Status> ends_at_once;
  // Each ends one call of ScoreTexts behind its first answers, the front one the first call; later calls end with
  // `status`.
  std::deque<grpc::Status> first_ends;
  // These calls do not answer their first document.
  bool loses_first_document = false;
  // So many calls of Models, of Sessions without a stream, and of Tokenize are refused: the server is full.
  std::atomic<int> refusals = 0;
  // Trailing metadata grpc-retry-pushback-ms of refusals and of CloseSession, in ScoreTexts of calls that
  // `ends_at_once` ends; empty: none.
  std::string pushback;
  // Calls of GenerateStream send their messages and then wait until they are cancelled; ScoreTexts after its first
  // answers, and ClassifyImage at once.
  bool stream_hangs = false;

  // What ListSessions answers, one to a page.
  std::vector<v1::ListedSession> listed_sessions;
  // What ExportSession sends.
  std::vector<v1::SessionPart> session;

  // Read after the call.
  v1::ListSessionsRequest list_request;
  v1::ExportSessionRequest export_request;
  std::vector<v1::ImportSessionRequest> import_requests;
  v1::CloseSessionRequest close_request;
  std::string session_client;  // x-client-id of the calls of Sessions
  std::string session_header;  // x-session-id of the last call that may have a session
  v1::ScoreTextRequest score_request;
  std::vector<v1::ClassifyImageRequest> classify_requests() const {
    const std::lock_guard lock(mutex_);
    return classify_requests_;
  }
  std::vector<v1::ScoreTextsRequest> document_requests;
  std::atomic<int> answered_documents = 0;  // of all calls; may be read meanwhile
  v1::GenerateRequest generate_request;
  int generate_calls = 0;
  v1::TokenizeRequest tokenize_request;
  v1::GetModelRequest get_model_request;

 private:
  // Whether the call is refused.
  bool Refuses(grpc::ServerContext& context);

  grpc::Status ScoreText(grpc::ServerContext* context, const v1::ScoreTextRequest* request,
                         v1::ScoreTextResponse* response) override;
  grpc::Status ScoreTexts(grpc::ServerContext* context,
                          grpc::ServerReaderWriter<v1::ScoreTextsResponse, v1::ScoreTextsRequest>* stream) override;
  grpc::Status ClassifyImage(grpc::ServerContext* context, const v1::ClassifyImageRequest* request,
                             v1::ClassifyImageResponse* response) override;
  grpc::Status Embed(grpc::ServerContext* /*context*/, const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override {
    return embed(*request, *response);
  }
  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        v1::GenerateResponse* response) override;
  grpc::Status GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                              grpc::ServerWriter<v1::GenerateStreamResponse>* writer) override;
  grpc::Status Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status ListSessions(grpc::ServerContext* context, const v1::ListSessionsRequest* request,
                            v1::ListSessionsResponse* response) override;
  grpc::Status CloseSession(grpc::ServerContext* context, const v1::CloseSessionRequest* request,
                            v1::CloseSessionResponse* response) override;
  grpc::Status ExportSession(grpc::ServerContext* context, const v1::ExportSessionRequest* request,
                             grpc::ServerWriter<v1::SessionPart>* writer) override;
  grpc::Status ImportSession(grpc::ServerContext* context, grpc::ServerReader<v1::ImportSessionRequest>* reader,
                             v1::ImportSessionResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request, v1::Model* response) override;

  mutable std::mutex mutex_;
  std::vector<v1::ClassifyImageRequest> classify_requests_;  // guarded by mutex_

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace longshort::client

#include "tests/clients/fake_server.h"

#include <optional>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longshort::client {
namespace {

std::atomic<bool> sends_request_ids = true;

// Adds the trailer that every status of a real server has.
class RequestIds final : public grpc::Server::GlobalCallbacks {
  void PreSynchronousRequest(grpc::ServerContext* context) override {
    if (sends_request_ids) context->AddTrailingMetadata("x-request-id", "fake");
  }
  void PostSynchronousRequest(grpc::ServerContext* /*context*/) override {}
};

const grpc::Status kFull(grpc::StatusCode::RESOURCE_EXHAUSTED, "the server is full");

std::string Header(const grpc::ServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  return found == context.client_metadata().end() ? "" : std::string(found->second.data(), found->second.size());
}

}  // namespace

void FakeServer::ActAsProxyOfALostServer() { sends_request_ids = false; }

FakeServer::FakeServer() {
  static const bool once = (grpc::Server::SetGlobalCallbacks(new RequestIds), true);
  (void)once;
  sends_request_ids = true;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::Inference::Service*>(this));
  builder.RegisterService(static_cast<v1::Models::Service*>(this));
  builder.RegisterService(static_cast<v1::Sessions::Service*>(this));
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

bool FakeServer::Refuses(grpc::ServerContext& context) {
  if (!pushback.empty()) context.AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
  return refusals > 0 && refusals-- > 0;
}

grpc::Status FakeServer::ScoreText(grpc::ServerContext* context, const v1::ScoreTextRequest* request,
                                   v1::ScoreTextResponse* response) {
  score_request = *request;
  if (!pushback.empty()) context->AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
  session_header = Header(*context, "x-session-id");
  *response = score;
  return status;
}

grpc::Status FakeServer::ScoreTexts(grpc::ServerContext* context,
                                    grpc::ServerReaderWriter<v1::ScoreTextsResponse, v1::ScoreTextsRequest>* stream) {
  if (!ends_at_once.empty()) {
    if (!pushback.empty()) context->AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
    const grpc::Status end = ends_at_once.front();
    ends_at_once.pop_front();
    return end;
  }
  std::optional<grpc::Status> early_end;
  if (!first_ends.empty()) {
    early_end = first_ends.front();
    first_ends.pop_front();
  }
  std::mutex writing;
  const auto answer_one = [&](const v1::ScoreTextsRequest& document) {
    v1::ScoreTextsResponse answer = score_document(document);
    answer.set_id(document.id());
    const std::lock_guard one_at_a_time(writing);
    stream->Write(answer);
    ++answered_documents;
  };
  std::thread first;
  const absl::Cleanup join = [&first] {
    if (first.joinable()) first.join();
  };
  std::vector<v1::ScoreTextsRequest> work;
  const auto answer_all = [&] {
    for (; !work.empty(); work.pop_back()) answer_one(work.back());
    while (stream_hangs && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  };
  v1::ScoreTextsRequest request;
  while (stream->Read(&request)) {
    document_requests.push_back(request);
    if (early_end.has_value() && loses_first_document && request.has_options()) continue;
    if (keeps_first_document && document_requests.size() == 1) {
      first = std::thread([&, request] {
        first_document_may_go.WaitForNotification();
        answer_one(request);
      });
      continue;
    }
    work.push_back(request);
    if (work.size() < documents_in_work) continue;
    answer_all();
    if (early_end.has_value()) return *early_end;
  }
  answer_all();
  return status;
}

grpc::Status FakeServer::ClassifyImage(grpc::ServerContext* context, const v1::ClassifyImageRequest* request,
                                       v1::ClassifyImageResponse* response) {
  {
    const std::lock_guard lock(mutex_);
    classify_requests_.push_back(*request);
  }
  while (stream_hangs && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  for (const v1::Image& image : request->images()) *response->add_results() = classify(image);
  return status;
}

grpc::Status FakeServer::Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                                  v1::GenerateResponse* response) {
  generate_request = *request;
  ++generate_calls;
  session_header = Header(*context, "x-session-id");
  *response = generation;
  return status;
}

grpc::Status FakeServer::GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                                        grpc::ServerWriter<v1::GenerateStreamResponse>* writer) {
  generate_request = *request;
  ++generate_calls;
  session_header = Header(*context, "x-session-id");
  for (const v1::GenerateStreamResponse& message : stream) writer->Write(message);
  while (stream_hangs && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  return status;
}

grpc::Status FakeServer::Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                                  v1::TokenizeResponse* response) {
  if (Refuses(*context)) return kFull;
  tokenize_request = *request;
  *response = tokens;
  return status;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* /*request*/,
                                    v1::ListModelsResponse* response) {
  if (Refuses(*context)) return kFull;
  response->mutable_models()->Assign(models.begin(), models.end());
  response->mutable_failures()->Assign(failures.begin(), failures.end());
  return status;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                                  v1::Model* response) {
  if (Refuses(*context)) return kFull;
  get_model_request = *request;
  if (models.empty()) return {grpc::StatusCode::NOT_FOUND, "model.name: there is no model"};
  *response = models.front();
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListSessions(grpc::ServerContext* context, const v1::ListSessionsRequest* request,
                                      v1::ListSessionsResponse* response) {
  if (Refuses(*context)) return kFull;
  list_request = *request;
  const size_t page = request->page_token().size();
  if (page < listed_sessions.size()) *response->add_sessions() = listed_sessions[page];
  if (page + 1 < listed_sessions.size()) response->set_next_page_token(request->page_token() + "x");
  return status;
}

grpc::Status FakeServer::CloseSession(grpc::ServerContext* context, const v1::CloseSessionRequest* request,
                                      v1::CloseSessionResponse* /*response*/) {
  if (Refuses(*context)) return kFull;
  close_request = *request;
  session_client = Header(*context, "x-client-id");
  session_header = Header(*context, "x-session-id");
  if (ends_at_once.empty()) return status;
  const grpc::Status end = ends_at_once.front();
  ends_at_once.pop_front();
  return end;
}

grpc::Status FakeServer::ExportSession(grpc::ServerContext* context, const v1::ExportSessionRequest* request,
                                       grpc::ServerWriter<v1::SessionPart>* writer) {
  export_request = *request;
  session_client = Header(*context, "x-client-id");
  session_header = Header(*context, "x-session-id");
  for (const v1::SessionPart& part : session) writer->Write(part);
  return status;
}

grpc::Status FakeServer::ImportSession(grpc::ServerContext* context,
                                       grpc::ServerReader<v1::ImportSessionRequest>* reader,
                                       v1::ImportSessionResponse* response) {
  session_client = Header(*context, "x-client-id");
  session_header = Header(*context, "x-session-id");
  import_requests.clear();
  for (v1::ImportSessionRequest request; reader->Read(&request);) import_requests.push_back(request);
  response->set_session_tokens(17);
  return status;
}

}  // namespace longshort::client

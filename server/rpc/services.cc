#include "server/rpc/services.h"

#include "absl/status/statusor.h"
#include "server/rpc/classify_image.h"
#include "server/rpc/close_session.h"
#include "server/rpc/describe_models.h"
#include "server/rpc/export_session.h"
#include "server/rpc/generate.h"
#include "server/rpc/generate_stream.h"
#include "server/rpc/immediate_call.h"
#include "server/rpc/import_session.h"
#include "server/rpc/manage_models.h"
#include "server/rpc/score_text.h"
#include "server/rpc/score_texts.h"
#include "server/rpc/tokenize.h"

namespace longshort {

grpc::ServerUnaryReactor* InferenceService::ScoreText(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return longshort::ScoreText(environment_, context, request, response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* InferenceService::ScoreTexts(
    grpc::CallbackServerContext* context) {
  return TextStream::Start(environment_, context);
}

grpc::ServerUnaryReactor* InferenceService::ClassifyImage(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return longshort::ClassifyImage(environment_, context, request, response);
}

grpc::ServerUnaryReactor* InferenceService::Generate(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return longshort::Generate(environment_, context, request, response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::GenerateStream(grpc::CallbackServerContext* context,
                                                                             const grpc::ByteBuffer* request) {
  return longshort::GenerateStream(environment_, context, request);
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::TokenizeRequest>(environment_, "Tokenize", context, request, response,
                                           [this](CallRecord& record, const v1::TokenizeRequest& question) {
                                             return longshort::Tokenize(environment_.limits, record, question);
                                           });
}

grpc::ServerUnaryReactor* ModelsService::ListModels(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::ListModelsRequest>(
      environment_, "ListModels", context, request, response,
      [this](CallRecord&, const v1::ListModelsRequest&) -> absl::StatusOr<v1::ListModelsResponse> {
        return longshort::ListModels(environment_);
      });
}

grpc::ServerUnaryReactor* ModelsService::GetModel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::GetModelRequest>(environment_, "GetModel", context, request, response,
                                           [this](CallRecord& record, const v1::GetModelRequest& question) {
                                             return longshort::GetModel(environment_.limits, record, question);
                                           });
}

grpc::ServerUnaryReactor* ModelsService::LoadModel(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return longshort::LoadModel(environment_, context, request, response);
}

grpc::ServerUnaryReactor* ModelsService::UnloadModel(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return longshort::UnloadModel(environment_, context, request, response);
}

grpc::ServerUnaryReactor* SessionsService::CloseSession(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::CloseSessionRequest>(environment_, "CloseSession", context, request, response,
                                               [](CallRecord& record, const v1::CloseSessionRequest& question) {
                                                 return longshort::CloseSession(record, question);
                                               });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* SessionsService::ExportSession(grpc::CallbackServerContext* context,
                                                                           const grpc::ByteBuffer* request) {
  return longshort::ExportSession(environment_, context, request);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* SessionsService::ImportSession(grpc::CallbackServerContext* context,
                                                                          grpc::ByteBuffer* response) {
  return longshort::ImportSession(environment_, context, response);
}

}  // namespace longshort

#include "server/longshort_v1/services.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "server/handlers/classify_images.h"
#include "server/handlers/close_session.h"
#include "server/handlers/generate.h"
#include "server/handlers/list_sessions.h"
#include "server/handlers/manage_models.h"
#include "server/handlers/score_texts.h"
#include "server/handlers/tokenize.h"
#include "server/longshort_v1/export_session.h"
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/generate_stream.h"
#include "server/longshort_v1/import_session.h"
#include "server/longshort_v1/names.h"
#include "server/longshort_v1/score_texts.h"
#include "server/longshort_v1/to_messages.h"
#include "server/rpc/deferred_call.h"
#include "server/rpc/immediate_call.h"

namespace longshort {
namespace {

// The message that `Result` becomes, or the error. What the result keeps of a model is gone when this returns: gRPC
// keeps an answer until its client has room for it.
template <typename Message, typename Result>
absl::StatusOr<Message> MessageOf(absl::StatusOr<Result> result) {
  LS_RETURN_IF_ERROR(result.status());
  return ToMessage(*std::move(result));
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ScoreText(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerLater<v1::ScoreTextRequest>(
      environment_, kScoreTextNames, context, request, response,
      [](CallRecord& record, const v1::ScoreTextRequest& message, const auto& answer) {
        return longshort::ScoreTexts(record, FromMessage(message), [answer](absl::StatusOr<ScoreResult> result) {
          answer(MessageOf<v1::ScoreTextResponse>(std::move(result)));
        });
      });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* InferenceService::ScoreTexts(
    grpc::CallbackServerContext* context) {
  return longshort::ScoreTexts(environment_, context);
}

grpc::ServerUnaryReactor* InferenceService::ClassifyImage(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerLater<v1::ClassifyImageRequest>(
      environment_, kClassifyImageNames, context, request, response,
      [](CallRecord& record, v1::ClassifyImageRequest message, const auto& answer) {
        return ClassifyImages(record, FromMessage(std::move(message)), [answer](absl::StatusOr<ClassifyResult> result) {
          answer(MessageOf<v1::ClassifyImageResponse>(std::move(result)));
        });
      });
}

grpc::ServerUnaryReactor* InferenceService::Generate(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerLater<v1::GenerateRequest>(
      environment_, kGenerateNames, context, request, response,
      [](CallRecord& record, const v1::GenerateRequest& message, const auto& answer) {
        return longshort::Generate(record, FromMessage(message), [answer](absl::StatusOr<GenerateResult> result) {
          answer(MessageOf<v1::GenerateResponse>(std::move(result)));
        });
      });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::GenerateStream(grpc::CallbackServerContext* context,
                                                                             const grpc::ByteBuffer* request) {
  return longshort::GenerateStream(environment_, context, request);
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::TokenizeRequest>(
      environment_, kTokenizeNames, context, request, response,
      [](CallRecord& record, const v1::TokenizeRequest& message) {
        return MessageOf<v1::TokenizeResponse>(longshort::Tokenize(record, FromMessage(message)));
      });
}

grpc::ServerUnaryReactor* ModelsService::ListModels(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::ListModelsRequest>(
      environment_, kListModelsNames, context, request, response,
      [this](CallRecord& record, const v1::ListModelsRequest&) -> absl::StatusOr<v1::ListModelsResponse> {
        v1::ListModelsResponse message;
        for (const std::shared_ptr<ServedModel>& served : environment_.models.List()) {
          if (!record.caller().MayUse(served->name)) continue;
          v1::Model& model = *message.add_models() = ToMessage(DescribeModel(*served, environment_.limits));
          if (model.has_classifier()) model.mutable_classifier()->clear_labels();
        }
        return message;
      });
}

grpc::ServerUnaryReactor* ModelsService::GetModel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::GetModelRequest>(
      environment_, kGetModelNames, context, request, response,
      [this](CallRecord& record, const v1::GetModelRequest& message) -> absl::StatusOr<v1::Model> {
        LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served,
                            record.FindModel(FromMessage(message.model())));
        return ToMessage(DescribeModel(*served, environment_.limits));
      });
}

grpc::ServerUnaryReactor* ModelsService::LoadModel(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerLater<v1::LoadModelRequest>(
      environment_, kLoadModelNames, context, request, response,
      [this](CallRecord& record, const v1::LoadModelRequest& message, const auto& answer) {
        auto answer_loaded = [this, answer](const absl::StatusOr<std::shared_ptr<ServedModel>>& loaded) {
          if (!loaded.ok()) return answer(absl::StatusOr<v1::Model>(loaded.status()));
          answer(absl::StatusOr<v1::Model>(ToMessage(DescribeModel(**loaded, environment_.limits))));
        };
        return longshort::LoadModel(record, FromMessage(message.model()), std::move(answer_loaded));
      });
}

grpc::ServerUnaryReactor* ModelsService::UnloadModel(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerLater<v1::UnloadModelRequest>(
      environment_, kUnloadModelNames, context, request, response,
      [](CallRecord& record, const v1::UnloadModelRequest& message, const auto& answer) {
        auto answer_unloaded = [answer](const absl::Status& status) {
          if (!status.ok()) return answer(absl::StatusOr<v1::UnloadModelResponse>(status));
          answer(absl::StatusOr<v1::UnloadModelResponse>(v1::UnloadModelResponse()));
        };
        return longshort::UnloadModel(record, FromMessage(message.model()), std::move(answer_unloaded));
      });
}

grpc::ServerUnaryReactor* SessionsService::ListSessions(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::ListSessionsRequest>(
      environment_, kListSessionsNames, context, request, response,
      [](CallRecord& record, const v1::ListSessionsRequest& message) {
        return MessageOf<v1::ListSessionsResponse>(longshort::ListSessions(record, FromMessage(message)));
      });
}

grpc::ServerUnaryReactor* SessionsService::CloseSession(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return AnswerAtOnce<v1::CloseSessionRequest>(
      environment_, kCloseSessionNames, context, request, response,
      [](CallRecord& record, const v1::CloseSessionRequest& message) -> absl::StatusOr<v1::CloseSessionResponse> {
        LS_RETURN_IF_ERROR(longshort::CloseSession(record, FromMessage(message)));
        return v1::CloseSessionResponse();
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

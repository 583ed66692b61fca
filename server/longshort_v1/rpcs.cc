#include "server/longshort_v1/rpcs.h"

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
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/names.h"
#include "server/longshort_v1/streams.h"
#include "server/longshort_v1/to_messages.h"
#include "server/rpc/unary.h"

namespace longshort {
namespace {

// The message that `Result` becomes, or the error. What the result keeps of a model is gone when this returns: gRPC
// keeps an answer until its client has room for it.
template <typename Message, typename Result>
absl::StatusOr<Message> MessageOf(absl::StatusOr<Result> result) {
  LS_RETURN_IF_ERROR(result.status());
  return ToMessage(*std::move(result));
}

absl::StatusOr<v1::ListModelsResponse> ListModels(CallRecord& record, const v1::ListModelsRequest& /*request*/) {
  v1::ListModelsResponse message;
  for (const std::shared_ptr<ServedModel>& served : record.environment().models.List()) {
    if (!record.caller().MayUse(served->name)) continue;
    v1::Model& model = *message.add_models() = ToMessage(DescribeModel(*served, record.environment().limits));
    if (model.has_classifier()) model.mutable_classifier()->clear_labels();
  }
  return message;
}

absl::StatusOr<v1::Model> GetModel(CallRecord& record, const v1::GetModelRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served, record.FindModel(FromMessage(request.model())));
  return ToMessage(DescribeModel(*served, record.environment().limits));
}

}  // namespace

std::vector<Rpc> LongshortV1Rpcs() {
  using Models = std::shared_ptr<ServedModel>;
  return {
      AnswerLater<v1::ScoreTextRequest, v1::ScoreTextResponse>(
          kScoreTextNames,
          [](CallRecord& record, const v1::ScoreTextRequest& request, auto answer) {
            return ScoreTexts(record, FromMessage(request), [answer](absl::StatusOr<ScoreResult> result) {
              answer(MessageOf<v1::ScoreTextResponse>(std::move(result)));
            });
          }),
      Streaming<v1::ScoreTextsRequest, v1::ScoreTextsResponse>(kScoreTextsNames, RpcKind::kBidirectional,
                                                               MakeScoreTexts),
      AnswerLater<v1::ClassifyImageRequest, v1::ClassifyImageResponse>(
          kClassifyImageNames,
          [](CallRecord& record, v1::ClassifyImageRequest request, auto answer) {
            return ClassifyImages(record, FromMessage(std::move(request)),
                                  [answer](absl::StatusOr<ClassifyResult> result) {
                                    answer(MessageOf<v1::ClassifyImageResponse>(std::move(result)));
                                  });
          }),
      AnswerLater<v1::GenerateRequest, v1::GenerateResponse>(
          kGenerateNames,
          [](CallRecord& record, const v1::GenerateRequest& request, auto answer) {
            return Generate(record, FromMessage(request), [answer](absl::StatusOr<GenerateResult> result) {
              answer(MessageOf<v1::GenerateResponse>(std::move(result)));
            });
          }),
      Streaming<v1::GenerateRequest, v1::GenerateStreamResponse>(kGenerateStreamNames, RpcKind::kServerStream,
                                                                 MakeGenerateStream),
      AnswerAtOnce<v1::TokenizeRequest, v1::TokenizeResponse>(
          kTokenizeNames,
          [](CallRecord& record, const v1::TokenizeRequest& request) {
            return MessageOf<v1::TokenizeResponse>(Tokenize(record, FromMessage(request)));
          }),

      AnswerAtOnce<v1::ListModelsRequest, v1::ListModelsResponse>(kListModelsNames, ListModels),
      AnswerAtOnce<v1::GetModelRequest, v1::Model>(kGetModelNames, GetModel),
      AnswerLater<v1::LoadModelRequest, v1::Model>(
          kLoadModelNames,
          [](CallRecord& record, const v1::LoadModelRequest& request, auto answer) {
            return LoadModel(record, FromMessage(request.model()),
                             [answer, limits = record.environment().limits](const absl::StatusOr<Models>& loaded) {
                               if (!loaded.ok()) return answer(loaded.status());
                               answer(ToMessage(DescribeModel(**loaded, limits)));
                             });
          }),
      AnswerLater<v1::UnloadModelRequest, v1::UnloadModelResponse>(
          kUnloadModelNames,
          [](CallRecord& record, const v1::UnloadModelRequest& request, auto answer) {
            return UnloadModel(record, FromMessage(request.model()), [answer](const absl::Status& status) {
              if (!status.ok()) return answer(status);
              answer(v1::UnloadModelResponse());
            });
          }),

      AnswerAtOnce<v1::ListSessionsRequest, v1::ListSessionsResponse>(
          kListSessionsNames,
          [](CallRecord& record, const v1::ListSessionsRequest& request) {
            return MessageOf<v1::ListSessionsResponse>(ListSessions(record, FromMessage(request)));
          }),
      AnswerAtOnce<v1::CloseSessionRequest, v1::CloseSessionResponse>(
          kCloseSessionNames,
          [](CallRecord& record, const v1::CloseSessionRequest& request) -> absl::StatusOr<v1::CloseSessionResponse> {
            LS_RETURN_IF_ERROR(CloseSession(record, FromMessage(request)));
            return v1::CloseSessionResponse();
          }),
      Streaming<v1::ExportSessionRequest, v1::SessionPart>(kExportSessionNames, RpcKind::kServerStream,
                                                           MakeExportSession),
      Streaming<v1::ImportSessionRequest, v1::ImportSessionResponse>(kImportSessionNames, RpcKind::kClientStream,
                                                                     MakeImportSession),
  };
}

}  // namespace longshort

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/call/unary.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

std::string NameOf(const FieldPath& path) {
  std::string name(path.field);
  if (path.index.has_value()) absl::StrAppend(&name, "[", *path.index, "]");
  if (path.part == TextPart::kText) name += ".text";
  if (path.part == TextPart::kBytes) name += ".raw";
  if (path.part == TextPart::kIds) name += ".ids";
  if (path.id_index.has_value()) absl::StrAppend(&name, ".ids[", *path.id_index, "]");
  return name;
}

constexpr FieldVocabulary kVocabulary = {.name_of = NameOf,
                                         .text_kinds = "text, raw or ids",
                                         .image_kinds = "encoded, or a tensor with values",
                                         .streaming_rpc = "GenerateStream"};

CallNames Named(const char* method, Scope scope) { return {kVocabulary, method, {.scope = scope}}; }

// Converts a result to its message, or returns its error. The result, with the model that it holds, is destroyed when
// this returns; gRPC keeps the message until its client has room for it.
template <typename Message, typename Result>
absl::StatusOr<Message> MessageOf(absl::StatusOr<Result> result) {
  LS_RETURN_IF_ERROR(result.status());
  return ToMessage(*std::move(result));
}

// A row for a handler of server/handlers, whose call and result these messages stand for.
template <typename Request, typename Response, typename Handle>
Rpc Inferring(const char* method, Handle handle) {
  return AnswerLater<Request, Response>(
      Named(method, Scope::kInfer), [handle](CallRecord& record, Request&& request, const Answerer<Response>& answer) {
        return handle(record, FromMessage(request),
                      Answering(answer, [](auto result) { return MessageOf<Response>(std::move(result)); }));
      });
}

absl::StatusOr<v1::ListModelsResponse> ListModels(CallRecord& record, const v1::ListModelsRequest& /*request*/) {
  v1::ListModelsResponse message;
  for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
    if (!record.caller().MayUse(served->name)) continue;
    v1::Model& model = *message.add_models() = ToMessage(*served, record.environment().limits);
    if (model.has_classifier()) model.mutable_classifier()->clear_labels();
  }
  for (const auto& [id, failure] : record.environment().models.failures()) {
    if (!record.caller().MayUse(id.first)) continue;
    v1::ModelFailure& failed = *message.add_failures();
    failed.set_name(id.first);
    failed.set_version(id.second);
    failed.set_reason(std::string(record.environment().models.WithoutPath(failure).message()));
  }
  return message;
}

absl::StatusOr<v1::Model> GetModel(CallRecord& record, const v1::GetModelRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedModel> served,
                      record.FindModel(FromMessage(request.model())));
  return ToMessage(*served, record.environment().limits);
}

}  // namespace

std::vector<Rpc> LongshortV1Rpcs() {
  return {
      Inferring<v1::ScoreTextRequest, v1::ScoreTextResponse>("longshort.v1.Inference/ScoreText", ScoreText),
      Streaming<v1::ScoreTextsRequest, v1::ScoreTextsResponse>(
          Named("longshort.v1.Inference/ScoreTexts", Scope::kInfer), RpcKind::kBidirectional, MakeScoreTexts),
      Inferring<v1::ClassifyImageRequest, v1::ClassifyImageResponse>("longshort.v1.Inference/ClassifyImage",
                                                                     ClassifyImages),
      Inferring<v1::EmbedRequest, v1::EmbedResponse>("longshort.v1.Inference/Embed", Embed),
      Inferring<v1::GenerateRequest, v1::GenerateResponse>("longshort.v1.Inference/Generate", Generate),
      Streaming<v1::GenerateRequest, v1::GenerateStreamResponse>(
          Named("longshort.v1.Inference/GenerateStream", Scope::kInfer), RpcKind::kServerStream, MakeGenerateStream),
      SideEffectFree(AnswerAtOnce<v1::TokenizeRequest, v1::TokenizeResponse>(
          Named("longshort.v1.Inference/Tokenize", Scope::kInfer),
          [](CallRecord& record, const v1::TokenizeRequest& request) {
            return MessageOf<v1::TokenizeResponse>(Tokenize(record, FromMessage(request)));
          })),

      SideEffectFree(AnswerAtOnce<v1::ListModelsRequest, v1::ListModelsResponse>(
          Named("longshort.v1.Models/ListModels", Scope::kInfer), ListModels)),
      SideEffectFree(
          AnswerAtOnce<v1::GetModelRequest, v1::Model>(Named("longshort.v1.Models/GetModel", Scope::kInfer), GetModel)),
      AnswerLater<v1::LoadModelRequest, v1::Model>(
          Named("longshort.v1.Models/LoadModel", Scope::kManage),
          [](CallRecord& record, const v1::LoadModelRequest& request, const auto& answer) {
            return LoadModel(
                record, FromMessage(request.model()),
                [answer, limits = record.environment().limits](const absl::StatusOr<core::LoadedVersion>& loaded) {
                  if (!loaded.ok()) return answer(loaded.status());
                  v1::Model model = ToMessage(*loaded->model, limits);
                  model.set_load_outcome(ToMessage(loaded->outcome));
                  answer(std::move(model));
                });
          }),
      AnswerLater<v1::UnloadModelRequest, v1::UnloadModelResponse>(
          Named("longshort.v1.Models/UnloadModel", Scope::kManage),
          [](CallRecord& record, const v1::UnloadModelRequest& request, const auto& answer) {
            return UnloadModel(record, FromMessage(request.model()), [answer](const absl::Status& status) {
              if (!status.ok()) return answer(status);
              answer(v1::UnloadModelResponse());
            });
          }),

      SideEffectFree(AnswerAtOnce<v1::ListSessionsRequest, v1::ListSessionsResponse>(
          Named("longshort.v1.Sessions/ListSessions", Scope::kSessions),
          [](CallRecord& record, const v1::ListSessionsRequest& request) {
            return MessageOf<v1::ListSessionsResponse>(ListSessions(record, FromMessage(request)));
          })),
      AnswerAtOnce<v1::CloseSessionRequest, v1::CloseSessionResponse>(
          Named("longshort.v1.Sessions/CloseSession", Scope::kSessions),
          [](CallRecord& record, const v1::CloseSessionRequest& request) -> absl::StatusOr<v1::CloseSessionResponse> {
            LS_RETURN_IF_ERROR(CloseSession(record, FromMessage(request)));
            return v1::CloseSessionResponse();
          }),
      Streaming<v1::ExportSessionRequest, v1::SessionPart>(
          Named("longshort.v1.Sessions/ExportSession", Scope::kSessions), RpcKind::kServerStream, MakeExportSession),
      Streaming<v1::ImportSessionRequest, v1::ImportSessionResponse>(
          Named("longshort.v1.Sessions/ImportSession", Scope::kSessions), RpcKind::kClientStream, MakeImportSession),
  };
}

}  // namespace longshort::server

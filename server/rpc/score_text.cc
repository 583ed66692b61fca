#include "server/rpc/score_text.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/field_error.h"
#include "server/requests/session_reader.h"
#include "server/rpc/fan_out.h"
#include "server/rpc/unary_call.h"
#include "server/scoring/text_scorer.h"

namespace longshort {
namespace {

v1::ScoreTextsOptions OptionsOf(const v1::ScoreTextRequest& request) {
  v1::ScoreTextsOptions options;
  options.set_token_log_probabilities(request.token_log_probabilities());
  options.set_top_alternatives(request.top_alternatives());
  options.set_truncate(request.truncate());
  options.set_top_k(request.top_k());
  options.set_all_logits(request.all_logits());
  return options;
}

absl::StatusOr<std::vector<TextToScore>> ReadTexts(const v1::ScoreTextRequest& request, const TextScorer& scorer,
                                                   int64_t most) {
  LS_RETURN_IF_ERROR(CheckFieldRange("number of inputs", request.inputs_size(), 1, most));
  const bool pairs = request.second_inputs_size() > 0;
  if (pairs && request.second_inputs_size() != request.inputs_size()) {
    return FieldError("number of second_inputs", request.second_inputs_size(),
                      absl::StrCat(request.inputs_size(), ", as many as inputs"));
  }
  std::vector<TextToScore> texts;
  int64_t tokens = 0;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const std::string index = absl::StrCat("[", i, "]");
    const v1::Input* second = pairs ? &request.second_inputs(i) : nullptr;
    LS_ASSIGN_OR_RETURN(TextToScore text, scorer.Read(request.inputs(i), absl::StrCat("inputs", index), second,
                                                      absl::StrCat("second_inputs", index)));
    tokens += text.tokens();
    texts.push_back(std::move(text));
  }
  LS_RETURN_IF_ERROR(scorer.CheckAnswerFits(request.inputs_size(), tokens));
  return texts;
}

// The session that the only text goes on with, if the request names one.
absl::StatusOr<std::optional<SessionReference>> SessionOf(const v1::ScoreTextRequest& request,
                                                          const ServedModel& model) {
  if (!request.has_session()) return std::nullopt;
  if (model.language_model() == nullptr) {
    return absl::InvalidArgumentError("session is set; it must be unset, because the model is a classifier");
  }
  if (request.inputs_size() > 1) {
    return FieldError("number of inputs", request.inputs_size(), "1 with a session, which goes on from one end");
  }
  return ReadSession(&request.session());
}

class ScoreTextCall final : public UnaryCall {
 public:
  ScoreTextCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : UnaryCall(environment, "ScoreText", context, response), limits_(environment.limits) {}

 private:
  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(const v1::ScoreTextRequest request, ParseMessage<v1::ScoreTextRequest>(bytes));
    LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedModel> model, record().FindModel(request.model()));
    LS_ASSIGN_OR_RETURN(std::optional<SessionReference> session, SessionOf(request, *model));
    const int64_t most = std::min(limits_.inputs, model->max_items());
    LS_ASSIGN_OR_RETURN(scorer_, TextScorer::Make(std::move(model), OptionsOf(request), limits_));
    LS_ASSIGN_OR_RETURN(std::vector<TextToScore> texts, ReadTexts(request, *scorer_, most));
    texts.front().session = std::move(session);

    scored_.resize(texts.size());
    const auto count = static_cast<int64_t>(texts.size());
    int64_t tokens = 0;
    for (const TextToScore& text : texts) tokens += text.tokens();
    fan_out_.emplace(count + 1, record().engine_context().cancelled);
    const bool ended = SubmitAll(count, *fan_out_, [&](const CallPart& part) {
      // Holds the call until the engine has told the end of the text.
      auto done = [this, keep = self(), i = part.index](absl::StatusOr<ScoredText> scored) {
        TextEnded(i, std::move(scored));
      };
      RequestContext context = record().engine_context();
      context.part = part;
      TextToScore& text = texts[part.index];
      context.part.share = static_cast<double>(text.tokens()) / static_cast<double>(tokens);
      return scorer_->Submit(std::move(text), context, std::move(done));
    });
    if (ended) End();
    return absl::OkStatus();
  }

  // Each text writes to a place of its own, so no lock is needed among them.
  void TextEnded(int64_t index, absl::StatusOr<ScoredText> scored) {
    const absl::Status status = scored.status();
    if (status.ok()) scored_[index] = *std::move(scored);
    if (fan_out_->Finished(status)) End();
  }

  void End() {
    if (const absl::Status status = fan_out_->status(); !status.ok()) return FinishWithError(status);
    v1::ScoreTextResponse answer;
    int64_t tokens = 0;
    int64_t cached_tokens = 0;
    for (ScoredText& text : scored_) {
      tokens += text.tokens;
      cached_tokens += text.cached_tokens;
      record().AddWork(text);
      if (auto* score = std::get_if<v1::TextScore>(&text.result); score != nullptr) {
        *answer.add_scores() = std::move(*score);
      } else {
        *answer.add_classifications() = std::get<v1::TextClassification>(std::move(text.result));
      }
    }
    answer.mutable_usage()->set_prompt_tokens(tokens);
    answer.mutable_usage()->set_cached_tokens(cached_tokens);
    *answer.mutable_model() = record().answering_model();
    scorer_ = nullptr;
    FinishWith(answer);
  }

  const RequestLimits& limits_;
  std::unique_ptr<TextScorer> scorer_;
  std::optional<FanOut> fan_out_;
  std::vector<ScoredText> scored_;
};

}  // namespace

grpc::ServerUnaryReactor* ScoreText(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return UnaryCall::Start<ScoreTextCall>(environment, context, request, response);
}

}  // namespace longshort

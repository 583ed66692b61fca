#include "server/open_inference_v2/infer.h"

#include <memory>
#include <utility>
#include <variant>

#include "server/handlers/handlers.h"
#include "server/open_inference_v2/infer_answer.h"

namespace longshort {
namespace {

class Beginning {
 public:
  Beginning(CallRecord& record, AnswerForm form, InferDone done)
      : record_(record), form_(std::move(form)), done_(std::move(done)) {}

  absl::Status operator()(ClassifyCall& call) {
    return ClassifyImages(record_, std::move(call), Answer<ClassifyResult>());
  }
  absl::Status operator()(ScoreCall& call) { return ScoreTexts(record_, call, Answer<ScoreResult>()); }
  absl::Status operator()(GenerateCall& call) { return Generate(record_, call, Answer<GenerateResult>()); }

 private:
  template <typename Result>
  std::function<void(absl::StatusOr<Result>)> Answer() {
    return [form = std::move(form_), done = std::move(done_)](absl::StatusOr<Result> result) {
      if (!result.ok()) return done(result.status());
      absl::StatusOr<inference::ModelInferResponse> answer = AnswerOf(form, *result);
      result =
          absl::CancelledError();  // what it keeps of the model is gone before the client makes room for the answer
      done(std::move(answer));
    };
  }

  CallRecord& record_;
  AnswerForm form_;
  InferDone done_;
};

}  // namespace

absl::Status Infer(CallRecord& record, InferPlan plan, InferDone done) {
  return std::visit(Beginning(record, std::move(plan.form), std::move(done)), plan.call);
}

}  // namespace longshort

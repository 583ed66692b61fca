#include "server/rpc/classify_image.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "longshort/v1/inference.pb.h"
#include "models/status_macros.h"
#include "server/requests/class_answer.h"
#include "server/requests/field_error.h"
#include "server/requests/image_reader.h"
#include "server/requests/item_error.h"
#include "server/rpc/fan_out.h"
#include "server/rpc/unary_call.h"

namespace longshort {
namespace {

class ClassifyImageCall final : public UnaryCall {
 public:
  ClassifyImageCall(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                    grpc::ByteBuffer* response)
      : UnaryCall(environment, "ClassifyImage", context, response), limits_(environment.limits) {}

 private:
  // Holds the call until the engine has told the end of one image.
  class Listener final : public ClassificationListener {
   public:
    Listener(std::shared_ptr<UnaryCall> keep, ClassifyImageCall& call, int index)
        : keep_(std::move(keep)), call_(call), index_(index) {}
    void OnFinished(absl::StatusOr<ItemScores> scores) override { call_.ImageEnded(index_, scores); }

   private:
    const std::shared_ptr<UnaryCall> keep_;
    ClassifyImageCall& call_;
    const int index_;
  };

  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(v1::ClassifyImageRequest parsed, ParseMessage<v1::ClassifyImageRequest>(bytes));
    const auto request = std::make_shared<const v1::ClassifyImageRequest>(std::move(parsed));
    LS_ASSIGN_OR_RETURN(model_, record().FindClassifier(request->model()));
    if (model_->preprocessor == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("ClassifyImage needs a classifier of images; model ",
                                                        record().answering_model().name(), " takes texts"));
    }
    const int count = request->images_size();
    LS_RETURN_IF_ERROR(CheckFieldRange("number of images", count, 1, std::min(limits_.images, model_->max_items)));
    LS_ASSIGN_OR_RETURN(class_answer_, ReadClassAnswer(request->top_k(), request->all_logits(), model_->info));
    LS_RETURN_IF_ERROR(CheckAnswerFits(class_answer_, model_->info, count, limits_));

    for (int i = 0; i < count; ++i) answer_.add_results();
    timings_.resize(count);
    fan_out_.emplace(count + 1, record().engine_context().cancelled);
    if (SubmitAll(count, *fan_out_, [&](const CallPart& part) { return Submit(request, part); })) End();
    return absl::OkStatus();
  }

  absl::Status Submit(const std::shared_ptr<const v1::ClassifyImageRequest>& request, const CallPart& part) {
    const auto index = static_cast<int>(part.index);
    RequestContext context = record().engine_context();
    context.part = part;
    auto image = ReadImage(request, index, model_->preprocessor, context, work_until_prepared_);
    if (!image.ok()) {
      ImageEnded(index, image.status());
      return absl::OkStatus();
    }
    work_until_prepared_ = image->work_until_prepared;
    return model_->engine->Classify(*std::move(image), std::make_shared<Listener>(self(), *this, index));
  }

  // Each image writes to places of its own, so the listeners need no lock among themselves.
  void ImageEnded(int index, const absl::StatusOr<ItemScores>& scores) {
    v1::ImageResult& result = *answer_.mutable_results(index);
    absl::Status end_of_call;
    if (scores.ok()) {
      *result.mutable_classification() = ToMessage(*scores, class_answer_, model_->info);
      timings_[index] = scores->timings;
    } else if (EndsCall(scores.status())) {
      end_of_call = scores.status();
    } else {
      *result.mutable_error() = ToItemError(scores.status());
    }
    if (fan_out_->Finished(end_of_call)) End();
  }

  void End() {
    for (const ClassificationTimings& timings : timings_) record().AddWork(0, timings);
    if (const absl::Status status = fan_out_->status(); !status.ok()) return FinishWithError(status);
    *answer_.mutable_model() = record().answering_model();
    model_ = nullptr;
    FinishWith(std::exchange(answer_, {}));
  }

  const RequestLimits& limits_;
  std::shared_ptr<const ServedClassifier> model_;
  ClassAnswer class_answer_;
  absl::Duration work_until_prepared_;  // of the images submitted so far
  std::optional<FanOut> fan_out_;
  v1::ClassifyImageResponse answer_;
  std::vector<ClassificationTimings> timings_;
};

}  // namespace

grpc::ServerUnaryReactor* ClassifyImage(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return UnaryCall::Start<ClassifyImageCall>(environment, context, request, response);
}

}  // namespace longshort

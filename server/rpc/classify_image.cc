#include "server/rpc/classify_image.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
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
    LS_ASSIGN_OR_RETURN(v1::ClassifyImageRequest request, ParseMessage<v1::ClassifyImageRequest>(bytes));
    LS_ASSIGN_OR_RETURN(model_, record().FindClassifier(request.model()));
    if (model_->preprocessor == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("ClassifyImage needs a classifier of images; model ",
                                                        record().answering_model().name(), " takes texts"));
    }
    const int count = request.images_size();
    LS_RETURN_IF_ERROR(CheckFieldRange("number of images", count, 1, std::min(limits_.images, model_->max_items)));
    LS_ASSIGN_OR_RETURN(class_answer_, ReadClassAnswer(request.top_k(), request.all_logits(), model_->info));
    LS_RETURN_IF_ERROR(CheckAnswerFits(class_answer_, model_->info, count, limits_));

    for (int i = 0; i < count; ++i) answer_.add_results();
    timings_.resize(count);
    fan_out_.emplace(count + 1, record().engine_context().cancelled);
    std::vector<ReadableImage> images = ReadImages(std::move(*request.mutable_images()));
    const bool ended = SubmitAll(static_cast<int64_t>(images.size()), *fan_out_, [&](const CallPart& part) {
      ReadableImage& image = images[part.index];
      image.request.context.part = part;
      return model_->engine->Classify(std::move(image.request), std::make_shared<Listener>(self(), *this, image.index));
    });
    if (ended) End();
    return absl::OkStatus();
  }

  struct ReadableImage {
    int index;  // of the call's images
    ClassificationRequest request;
  };
  // Those that can be given to the engine; the others have ended.
  std::vector<ReadableImage> ReadImages(google::protobuf::RepeatedPtrField<v1::Image> images) {
    std::vector<ReadableImage> readable;
    absl::Duration work_until_prepared;
    for (int i = 0; i < images.size(); ++i) {
      auto image =
          ReadImage(std::move(images[i]), i, model_->preprocessor, record().engine_context(), work_until_prepared);
      if (!image.ok()) {
        ImageEnded(i, image.status());
        continue;
      }
      work_until_prepared = image->work_until_prepared;
      readable.push_back({i, *std::move(image)});
    }
    return readable;
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

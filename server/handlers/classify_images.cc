#include "server/handlers/classify_images.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/call_status.h"
#include "server/calls/field_error.h"
#include "server/handlers/class_answer.h"
#include "server/handlers/fan_out.h"
#include "server/handlers/image_reader.h"
#include "server/handlers/traced_request.h"

namespace longshort {
namespace {

// Held by the listener of each image.
class ImagesInWork final : public std::enable_shared_from_this<ImagesInWork> {
 public:
  ImagesInWork(CallRecord& record, std::shared_ptr<const ServedClassifier> model, const ClassAnswer& answer,
               std::function<void(absl::StatusOr<ClassifyResult>)> done)
      : record_(record), model_(std::move(model)), answer_(answer), done_(std::move(done)) {}

  void Submit(std::vector<ImageInput> images) {
    const auto count = static_cast<int64_t>(images.size());
    result_.images.resize(images.size());
    timings_.resize(images.size());
    fan_out_.emplace(count + 1, record_.engine_context().cancelled);
    std::vector<ReadableImage> readable = ReadImages(std::move(images));
    const Submission submission =
        SubmitAll(static_cast<int64_t>(readable.size()), *fan_out_, [&](const CallPart& part) {
          ReadableImage& image = readable[part.index];
          image.request.context.part = part;
          return model_->engine->Classify(std::move(image.request),
                                          std::make_shared<Listener>(shared_from_this(), image.index));
        });
    if (submission.ended) End();
  }

 private:
  class Listener final : public ClassificationListener {
   public:
    Listener(std::shared_ptr<ImagesInWork> work, size_t index) : work_(std::move(work)), index_(index) {}
    void OnFinished(absl::StatusOr<ItemScores> scores) override { work_->ImageEnded(index_, std::move(scores)); }

   private:
    const std::shared_ptr<ImagesInWork> work_;
    const size_t index_;
  };

  struct ReadableImage {
    size_t index = 0;  // of the call's images
    ClassificationRequest request;
  };
  // Those that can be given to the engine; the others have ended.
  std::vector<ReadableImage> ReadImages(std::vector<ImageInput> images) {
    std::vector<ReadableImage> readable;
    absl::Duration work_until_prepared;
    for (size_t i = 0; i < images.size(); ++i) {
      auto image = ReadImage(std::move(images[i]), static_cast<int64_t>(i), record_.names(), model_->preprocessor,
                             record_.engine_context(), work_until_prepared);
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
  void ImageEnded(size_t index, absl::StatusOr<ItemScores> scores) {
    absl::Status end_of_call;
    if (scores.ok()) {
      timings_[index] = scores->timings;
      result_.images[index] = AnswerOf(*std::move(scores), answer_, model_->info);
    } else if (EndsCall(scores.status())) {
      end_of_call = scores.status();
    } else {
      result_.images[index] = scores.status();
    }
    if (fan_out_->Finished(end_of_call)) End();
  }

  void End() {
    for (const ClassificationTimings& timings : timings_) record_.AddWork(timings);
    const auto done = std::exchange(done_, nullptr);  // it holds the call, whose end may not wait for this one's
    if (const absl::Status status = fan_out_->status(); !status.ok()) return done(status);
    result_.model = record_.answering_model();
    result_.classifier = std::move(model_);
    done(std::move(result_));
  }

  CallRecord& record_;
  std::shared_ptr<const ServedClassifier> model_;
  const ClassAnswer answer_;
  std::function<void(absl::StatusOr<ClassifyResult>)> done_;
  std::optional<FanOut> fan_out_;
  ClassifyResult result_;
  std::vector<ClassificationTimings> timings_;
};

}  // namespace

absl::Status ClassifyImages(CallRecord& record, ClassifyCall call,
                            std::function<void(absl::StatusOr<ClassifyResult>)> done) {
  const RequestLimits& limits = record.environment().limits;
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedClassifier> model, record.FindClassifier(call.model));
  record.CountIn(model->statistics, kClassificationOperation);
  if (model->preprocessor == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(names.rpc(), " needs a classifier of images; model ",
                                                      record.answering_model().name, " takes texts"));
  }
  const auto count = static_cast<int64_t>(call.images.size());
  LS_RETURN_IF_ERROR(CheckFieldRange(absl::StrCat("number of ", names.Of(CallField::kImages)), count, 1,
                                     std::min(limits.images, model->max_items)));
  LS_ASSIGN_OR_RETURN(const ClassAnswer answer, ReadClassAnswer(call.options, model->info, names));
  LS_RETURN_IF_ERROR(CheckAnswerFits(answer, model->info, count, limits, names));
  std::make_shared<ImagesInWork>(record, std::move(model), answer, std::move(done))->Submit(std::move(call.images));
  return absl::OkStatus();
}

}  // namespace longshort

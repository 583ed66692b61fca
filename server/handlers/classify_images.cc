#include "server/handlers/classify_images.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/call_status.h"
#include "server/calls/field_error.h"
#include "server/handlers/class_answer.h"
#include "server/handlers/image_reader.h"
#include "server/handlers/scatter_gather.h"
#include "server/handlers/traced_request.h"

namespace longshort {
namespace {

// What the images of a call give, and what they took.
struct ImagesInWork {
  ClassifyResult result;
  std::vector<ClassificationTimings> timings;
};
using ImageParts = ScatterGather<ImagesInWork>;

class ImageListener final : public ClassificationListener {
 public:
  ImageListener(std::shared_ptr<ImageParts> parts, size_t index, const ClassAnswer& answer, const ClassifierInfo& info)
      : parts_(std::move(parts)), index_(index), answer_(answer), info_(info) {}

  void OnFinished(absl::StatusOr<ItemScores> scores) override {
    const absl::Status end_of_call = EndsCall(scores.status()) ? scores.status() : absl::OkStatus();
    const ClassificationTimings timings = scores.ok() ? scores->timings : ClassificationTimings();
    absl::StatusOr<Classification> image =
        scores.ok() ? absl::StatusOr<Classification>(AnswerOf(*std::move(scores), answer_, info_)) : scores.status();
    parts_->PartEnded(end_of_call, [&](ImagesInWork& images) {
      images.timings[index_] = timings;
      images.result.images[index_] = std::move(image);
    });
  }

 private:
  const std::shared_ptr<ImageParts> parts_;
  const size_t index_;
  const ClassAnswer answer_;
  const ClassifierInfo& info_;  // of the model, which the parts keep
};

struct ReadableImage {
  size_t index = 0;  // of the call's images
  ClassificationRequest request;
};

// Those that can be given to the engine. The others' errors are their results.
std::vector<ReadableImage> ReadImages(CallRecord& record, const ServedClassifier& model, std::vector<ImageInput> images,
                                      ClassifyResult& result) {
  std::vector<ReadableImage> readable;
  absl::Duration work_until_prepared;
  for (size_t i = 0; i < images.size(); ++i) {
    auto image = ReadImage(std::move(images[i]), static_cast<int64_t>(i), record.names(), model.preprocessor,
                           record.engine_context(), work_until_prepared);
    if (!image.ok()) {
      result.images[i] = image.status();
      continue;
    }
    work_until_prepared = image->work_until_prepared;
    readable.push_back({i, *std::move(image)});
  }
  return readable;
}

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

  ImagesInWork images;
  images.result.images.resize(call.images.size());
  images.timings.resize(call.images.size());
  std::vector<ReadableImage> readable = ReadImages(record, *model, std::move(call.images), images.result);
  const auto parts = std::make_shared<ImageParts>(
      record.engine_context().cancelled, std::move(images),
      [&record, model](const absl::Status&, ImagesInWork& all) {
        for (const ClassificationTimings& timings : all.timings) record.AddWork(timings);
        all.result.model = record.answering_model();
        all.result.classifier = model;
      },
      [done = std::move(done)](absl::StatusOr<ImagesInWork> all) {
        if (!all.ok()) return done(all.status());
        done(std::move(all->result));
      });
  parts->SubmitParts(static_cast<int64_t>(readable.size()), [&](const CallPart& part) {
    ReadableImage& image = readable[part.index];
    image.request.context.part = part;
    return model->engine->Classify(std::move(image.request),
                                   std::make_shared<ImageListener>(parts, image.index, answer, model->info));
  });
  return absl::OkStatus();
}

}  // namespace longshort

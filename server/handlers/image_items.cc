#include "server/handlers/image_items.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"
#include "server/handlers/handlers.h"
#include "server/handlers/item_answer.h"
#include "server/handlers/scatter_gather.h"

namespace longshort::server {
namespace {

// Rough cost of decoding and resizing. Only the relation between calls matters.
constexpr absl::Duration kTimePerPixel = absl::Nanoseconds(20);
// Shorter preparations run in the thread that reads the call: waking another thread would take as long.
constexpr absl::Duration kWakingAThread = absl::Microseconds(50);

int64_t Pixels(const models::RawImage& raw) {
  constexpr int64_t kMax = int64_t{1} << 28;  // a message holds fewer values, whatever the client states
  return raw.height < 1 || raw.width < 1 || raw.height > kMax / raw.width ? 0 : raw.height * raw.width;
}

// An image and, if it is a file, its header, which is read once.
struct ReadInput {
  ImageInput image;
  absl::StatusOr<models::ImageHeader> header;

  ReadInput(ImageInput input, const models::ImagePreprocessor& preprocessor) : image(std::move(input)) {
    if (!raw()) header = preprocessor.ReadHeader(std::get<std::string_view>(image.content));
  }
  bool raw() const { return std::holds_alternative<models::RawImage>(image.content); }

  // 0 if Prepare will reject the image by its header.
  int64_t pixels() const {
    if (raw()) return Pixels(std::get<models::RawImage>(image.content));
    return header.ok() ? header->size.pixels() : 0;
  }

  absl::StatusOr<models::ClassifierItem> Prepare(const models::ImagePreprocessor& preprocessor) const {
    if (raw()) return preprocessor.Convert(std::get<models::RawImage>(image.content));
    if (!header.ok()) return header.status();
    return preprocessor.Decode(std::get<std::string_view>(image.content), *header);
  }
};

// Makes the engine's request for image `index` of a call. The engine's preparation decodes and holds the image, and its
// errors name it. A few raw pixels become an item at once, because waking a thread would take longer. `work_before` is
// work_until_prepared of the previous image. Errors: INVALID_ARGUMENT, naming the image, if it has no content.
absl::StatusOr<core::ClassificationRequest> ReadImage(ImageInput image, int64_t index, const CallNames& names,
                                                      std::shared_ptr<const models::ImagePreprocessor> preprocessor,
                                                      const core::RequestContext& context, absl::Duration work_before) {
  if (std::holds_alternative<std::monostate>(image.content)) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.Of("images", index), " is unset; it must have ", names.image_kinds()));
  }
  core::ClassificationRequest one;
  one.context = context;
  one.bytes = image.bytes;
  ReadInput input(std::move(image), *preprocessor);
  one.preparation_work = kTimePerPixel * input.pixels();
  one.work_until_prepared = work_before + one.preparation_work;
  const bool quick = input.raw() && one.work_until_prepared + kTimePerPixel * preprocessor->pixels() <= kWakingAThread;
  core::ItemPreparation preparation = [input = std::move(input), index, &names,
                                       preprocessor =
                                           std::move(preprocessor)]() -> absl::StatusOr<models::ClassifierItem> {
    absl::StatusOr<models::ClassifierItem> item = input.Prepare(*preprocessor);
    if (item.ok()) return item;
    return absl::Status(item.status().code(), absl::StrCat(names.Of("images", index), ": ", item.status().message()));
  };
  if (quick) {
    LS_ASSIGN_OR_RETURN(one.item, core::PrepareItem(preparation));
  } else {
    one.item = std::move(preparation);
  }
  return one;
}

using ImageParts = ScatterGather<ImageResults>;

class ImageListener final : public core::ClassificationListener {
 public:
  ImageListener(std::shared_ptr<ImageParts> parts, size_t index) : parts_(std::move(parts)), index_(index) {}

  void OnFinished(absl::StatusOr<core::ItemResult> result) override {
    const absl::Status end_of_call = EndsCall(result.status()) ? result.status() : absl::OkStatus();
    parts_->PartEnded(end_of_call, [&](ImageResults& all) { all[index_] = std::move(result); });
  }

 private:
  const std::shared_ptr<ImageParts> parts_;
  const size_t index_;
};

struct ReadableImage {
  size_t index = 0;  // of the call's images
  core::ClassificationRequest request;
};

// The images to submit to the engine. For the others, their errors are the results.
std::vector<ReadableImage> ReadImages(CallRecord& record, const core::ServedClassifier& model,
                                      std::vector<ImageInput> images, models::ClassifierOutput output,
                                      ImageResults& results) {
  std::vector<ReadableImage> readable;
  absl::Duration work_until_prepared;
  for (size_t i = 0; i < images.size(); ++i) {
    auto image = ReadImage(std::move(images[i]), static_cast<int64_t>(i), record.names(), model.preprocessor,
                           record.engine_context(), work_until_prepared);
    if (!image.ok()) {
      results[i] = image.status();
      continue;
    }
    image->output = output;
    work_until_prepared = image->work_until_prepared;
    readable.push_back({i, *std::move(image)});
  }
  return readable;
}

}  // namespace

absl::Status CheckImages(const CallRecord& record, const core::ServedClassifier& model, size_t count) {
  const CallNames& names = record.names();
  if (model.preprocessor == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(names.rpc(), " needs a classifier of images; model ",
                                                      record.answering_model().name, " takes texts"));
  }
  return CheckFieldRange([&] { return absl::StrCat("number of ", names.Of("images")); }, static_cast<int64_t>(count), 1,
                         std::min(record.environment().limits.images, model.max_items));
}

void RunImages(CallRecord& record, std::shared_ptr<const core::ServedClassifier> model, std::vector<ImageInput> images,
               models::ClassifierOutput output, std::function<void(absl::StatusOr<ImageResults>)> done) {
  ImageResults results(images.size(), absl::UnknownError("not run yet"));
  std::vector<ReadableImage> readable = ReadImages(record, *model, std::move(images), output, results);
  const auto parts = std::make_shared<ImageParts>(
      record.engine_context().cancelled, std::move(results),
      [&record](const absl::Status&, ImageResults& all) {
        for (const absl::StatusOr<core::ItemResult>& image : all) {
          record.AddWork(image.ok() ? image->timings : core::ClassificationTimings());
        }
      },
      std::move(done));
  parts->SubmitParts(static_cast<int64_t>(readable.size()), [&](const core::PositionInCall& position) {
    ReadableImage& image = readable[position.index];
    image.request.context.position_in_call = position;
    return model->engine->Classify(std::move(image.request), std::make_shared<ImageListener>(parts, image.index));
  });
}

absl::Status ClassifyImages(CallRecord& record, ClassifyCall call,
                            std::function<void(absl::StatusOr<ClassifyResult>)> done) {
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const core::ServedClassifier> model, record.FindClassifier(call.model));
  record.CountIn(model->statistics, kClassificationOperation);
  LS_RETURN_IF_ERROR(CheckImages(record, *model, call.images.size()));
  LS_ASSIGN_OR_RETURN(const ClassOptions answer, ReadClassAnswer(call.options, model->info, names));
  const auto count = static_cast<int64_t>(call.images.size());
  LS_RETURN_IF_ERROR(CheckAnswerFits(answer, model->info, count, record.max_answer_bytes(), names));
  LS_RETURN_IF_ERROR(record.answers().Hold(count * MaxBytes(answer, model->info)));

  RunImages(record, model, std::move(call.images), OutputOf(answer),
            [&record, model, answer, done = std::move(done)](absl::StatusOr<ImageResults> images) {
              if (!images.ok()) return done(images.status());
              const auto classify = [&](core::ItemResult one) { return AnswerOf(std::move(one), answer, model->info); };
              done(ClassifyResult{.images = ConvertEach(*std::move(images), classify),
                                  .model = record.answering_model(),
                                  .classifier = model});
            });
  return absl::OkStatus();
}

}  // namespace longshort::server

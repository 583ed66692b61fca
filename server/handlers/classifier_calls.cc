// Classification of images, and embedding of texts or images: each image of a call is an engine request.

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/registry/served_model.h"
#include "core/requests/classifier_engine.h"
#include "models/classifier.h"
#include "server/call/call_record.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/handlers/handlers.h"
#include "server/handlers/item_answer.h"
#include "server/handlers/scatter_gather.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {
namespace {

// One result for each image, in request order. An error concerns its image only.
using ImageResults = std::vector<absl::StatusOr<core::ItemResult>>;

// What `convert` makes of each result. Errors stay as they are.
template <typename Convert>
auto ConvertEach(ImageResults images, Convert convert) {
  std::vector<absl::StatusOr<std::invoke_result_t<Convert, core::ItemResult>>> converted;
  converted.reserve(images.size());
  for (absl::StatusOr<core::ItemResult>& image : images) {
    if (image.ok()) {
      converted.emplace_back(convert(*std::move(image)));
    } else {
      converted.emplace_back(image.status());
    }
  }
  return converted;
}

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

// Errors: FAILED_PRECONDITION if the model takes no images; INVALID_ARGUMENT if their number is out of range.
absl::Status CheckImages(const CallRecord& record, const core::ServedClassifier& model, size_t count) {
  const CallNames& names = record.names();
  if (model.preprocessor == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(names.rpc(), " needs a classifier of images; model ",
                                                      record.answering_model().name, " takes texts"));
  }
  return CheckFieldRange([&] { return absl::StrCat("number of ", names.Of("images")); }, static_cast<int64_t>(count), 1,
                         std::min(record.environment().limits.images, model.max_items));
}

// Computes `output` of each image. `done` holds `record`. It is called once, at once or later, on any thread.
// REQUIRES: CheckImages succeeded.
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

using Done = std::function<void(absl::StatusOr<EmbedResult>)>;

absl::Status CheckNotSet(const char* field, bool set, const CallNames& names, const char* because) {
  if (!set) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(names.Of(field), " is set; it must be unset, because the model takes ", because));
}

absl::Status EmbedTexts(CallRecord& record, const std::shared_ptr<const core::ServedClassifier>& model, EmbedCall call,
                        Done done) {
  LS_RETURN_IF_ERROR(CheckNotSet("images", !call.images.empty(), record.names(), "texts"));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TextScorer> scorer,
                      MakeEmbeddingScorer(model, call.options, record.names()));
  ScoreCall texts;
  texts.texts = std::move(call.texts);
  texts.second_texts = std::move(call.second_texts);
  return RunTexts(record, texts, scorer, model->max_items, ScoreResult(),
                  [done = std::move(done)](absl::StatusOr<ScoreResult> scored) {
                    if (!scored.ok()) return done(scored.status());
                    EmbedResult result{.embeddings = {}, .usage = scored->usage, .model = std::move(scored->model)};
                    for (ScoredText& text : scored->texts) {
                      result.embeddings.emplace_back(std::get<Embedding>(std::move(text.result)));
                    }
                    done(std::move(result));
                  });
}

absl::Status EmbedImages(CallRecord& record, const std::shared_ptr<const core::ServedClassifier>& model, EmbedCall call,
                         Done done) {
  const CallNames& names = record.names();
  LS_RETURN_IF_ERROR(CheckNotSet("inputs", !call.texts.empty(), names, "images"));
  LS_RETURN_IF_ERROR(CheckNotSet("second_inputs", !call.second_texts.empty(), names, "images"));
  LS_RETURN_IF_ERROR(CheckNotSet("truncate", call.options.truncate, names, "images"));
  LS_RETURN_IF_ERROR(CheckImages(record, *model, call.images.size()));
  LS_ASSIGN_OR_RETURN(const models::ClassifierOutput output, OutputOf(call.options.pooling, model->info, names));
  const auto count = static_cast<int64_t>(call.images.size());
  LS_RETURN_IF_ERROR(CheckEmbeddingsFit(model->info, count, record.max_answer_bytes()));
  LS_RETURN_IF_ERROR(record.answers().Hold(count * MaxEmbeddingBytes(model->info)));
  RunImages(
      record, model, std::move(call.images), output,
      [&record, normalize = call.options.normalize, done = std::move(done)](absl::StatusOr<ImageResults> images) {
        if (!images.ok()) return done(images.status());
        const auto embed = [normalize](core::ItemResult one) { return EmbeddingOf(std::move(one), normalize); };
        done(EmbedResult{
            .embeddings = ConvertEach(*std::move(images), embed), .usage = {}, .model = record.answering_model()});
      });
  return absl::OkStatus();
}

}  // namespace

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

absl::Status Embed(CallRecord& record, EmbedCall call, Done done) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedClassifier> model, record.FindClassifier(call.model));
  record.CountIn(model->statistics, kEmbeddingOperation);
  const bool texts = model->info.input == models::ClassifierInput::kText;
  return (texts ? EmbedTexts : EmbedImages)(record, model, std::move(call), std::move(done));
}

}  // namespace longshort::server

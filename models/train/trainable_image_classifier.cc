#include <algorithm>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/cvt/cvt_network.h"
#include "models/images/decode_image.h"
#include "models/images/image_preprocessor.h"
#include "models/train/held_out_figures.h"
#include "models/train/labelled_data.h"
#include "models/train/starting_model.h"
#include "models/train/trainable_classifier.h"
#include "models/train/training_run.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

constexpr double kStatisticsMomentum = 0.1;  // as the published models were trained

absl::StatusOr<cv::Mat> DecodePixels(const LabelledExample& file, OrientationUse orientation) {
  absl::StatusOr<cv::Mat> image = DecodeImage(file.content.front(), ImageLimits(), orientation);
  if (!image.ok()) return Named(file.place, image.status());
  return image;
}

absl::StatusOr<at::Tensor> PrepareForModel(const LabelledExample& file, const ImagePreprocessor& preprocessor) {
  const absl::StatusOr<ClassifierItem> item = preprocessor.Decode(file.content.front());
  if (!item.ok()) return Named(file.place, item.status());
  const ImageItem& image = std::get<ImageItem>(*item);
  at::Tensor values = at::empty({3, image.height, image.width});
  image.WriteValues(values.mutable_data_ptr<float>());
  return values;
}

struct Images {
  CvtConfig config;
  // As encoded, since pixels take ten times the memory. All can be decoded.
  std::vector<LabelledExample> train, held_out, validation;
};

class TrainableImageClassifier final : public TrainableClassifier {
 public:
  TrainableImageClassifier(ClassifierData data, Images images, const AugmentationOptions& augmentation)
      : TrainableClassifier(std::move(data)),
        images_(std::move(images)),
        augmentation_(augmentation),
        preprocessor_(MakeImagePreprocessor(images_.config.preprocessing, {})) {
    const ImagePreprocessingConfig& preprocessing = images_.config.preprocessing;
    mean_ = at::tensor(at::ArrayRef<double>(preprocessing.mean)).to(at::kFloat).view({3, 1, 1});
    deviation_ = at::tensor(at::ArrayRef<double>(preprocessing.standard_deviation)).to(at::kFloat).view({3, 1, 1});
  }

  Scores Train(const std::vector<NamedParameter>& parameters, absl::Span<const Draw> draws,
               uint64_t seed) const override {
    const int64_t height = augmentation_.side > 0 ? augmentation_.side : images_.config.preprocessing.crop_height;
    const int64_t width = augmentation_.side > 0 ? augmentation_.side : images_.config.preprocessing.crop_width;
    std::vector<RandomDraws> random;
    std::vector<at::Tensor> varied;
    std::vector<Target> classes;
    for (const Draw& draw : draws) {
      random.push_back(VariationOf(draw, seed));
      const LabelledExample& file = images_.train[draw.example];
      const cv::Mat pixels = DecodePixels(file, images_.config.preprocessing.orientation).value();
      varied.push_back(AugmentImage(pixels, height, width, augmentation_, random.back()));
      classes.push_back(data().description.train[draw.example]);
    }
    at::Tensor images = at::stack(varied).sub_(mean_).div_(deviation_);
    at::Tensor targets = TargetRows(classes, ProblemType::kSingleLabel, images_.config.classes);
    MixImages(images, targets, augmentation_, random);

    BatchStatistics statistics;
    Scores scores{.logits = NetworkOver(parameters).Logits(images, &statistics),
                  .targets = std::move(targets),
                  .statistics = std::move(statistics.means)};
    scores.statistics.insert(scores.statistics.end(), statistics.variances.begin(), statistics.variances.end());
    return scores;
  }

  void MoveStatistics(const std::vector<NamedParameter>& parameters,
                      const std::vector<at::Tensor>& statistics) const override {
    const auto middle = statistics.begin() + static_cast<int64_t>(statistics.size() / 2);
    const BatchStatistics batch{.means = {statistics.begin(), middle}, .variances = {middle, statistics.end()}};
    NetworkOver(parameters).UpdateRunningStatistics(batch, kStatisticsMomentum);
  }

  Scores Evaluate(const std::vector<NamedParameter>& parameters, EvaluatedPart part, int64_t first,
                  int64_t count) const override {
    const std::vector<LabelledExample>& files = part == EvaluatedPart::kHeldOut ? images_.held_out : images_.validation;
    std::vector<at::Tensor> images;
    for (const LabelledExample& file : absl::MakeConstSpan(files).subspan(first, count)) {
      images.push_back(PrepareForModel(file, *preprocessor_).value());
    }
    const auto targets = absl::MakeConstSpan(TargetsOf(part)).subspan(first, count);
    return {.logits = NetworkOver(parameters).Logits(at::stack(images), /*statistics=*/nullptr),
            .targets = TargetRows(targets, ProblemType::kSingleLabel, images_.config.classes),
            .statistics = {}};
  }

 private:
  CvtNetwork NetworkOver(const std::vector<NamedParameter>& parameters) const {
    return MakeCvtNetwork(images_.config, ByName(parameters));
  }

  Images images_;
  AugmentationOptions augmentation_;
  std::unique_ptr<ImagePreprocessor> preprocessor_;
  at::Tensor mean_, deviation_;  // [3, 1, 1]
};

// A model for images of 128 x 128 pixels; medium: about four times the weights.
CvtConfig PresetOf(const std::string& size) {
  CvtConfig config;
  const int64_t width = size == "medium" ? 128 : 64;
  config.stages = {
      {.width = width, .heads = width / 64, .depth = 1, .projection_rank = 16, .window_size = 4},
      {.width = 2 * width, .heads = width / 32, .depth = 1, .projection_rank = 8, .window_size = 2},
      {.width = 4 * width, .heads = width / 16, .depth = 2, .projection_rank = 4, .window_size = 2},
  };
  for (size_t stage = 1; stage < config.stages.size(); ++stage) {
    config.stages[stage].embedding_kernel = 3;
    config.stages[stage].embedding_stride = 2;
    config.stages[stage].embedding_padding = 1;
  }
  config.preprocessing.resize_shorter_side = 128;
  config.preprocessing.crop_height = 128;
  config.preprocessing.crop_width = 128;
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableImageClassifier(
    const TrainingFiles& files, const AugmentationOptions& augmentation) {
  ClassifierData data;
  Images images;
  LS_ASSIGN_OR_RETURN(GivenForm form, ReadGivenForm(files));
  images.config = PresetOf(files.size);
  if (!form.config.empty()) {
    LS_ASSIGN_OR_RETURN(images.config, ParseCvtConfig(form.config, form.name));
  }
  if (const int64_t side = augmentation.side; side > 0) {
    LS_RETURN_IF_ERROR(CheckCvtImageSize(images.config, side, side));
  }
  LS_ASSIGN_OR_RETURN(std::vector<LabelledExample> train, ReadClassFolders(files.train));
  std::vector<LabelledExample> held_out;
  if (!files.held_out.empty()) {
    LS_ASSIGN_OR_RETURN(held_out, ReadClassFolders(files.held_out));
  }
  LS_ASSIGN_OR_RETURN(DividedData divided, Divide(std::move(train), std::move(held_out), files.division, files.train));
  data.description = std::move(divided.description);
  const std::vector<std::string>& labels = data.description.labels;
  const int64_t classes = images.config.classes;
  if (files.config.empty()) images.config.classes = static_cast<int64_t>(labels.size());
  LS_RETURN_IF_ERROR(CheckCvtConfig(images.config, form.name));
  LS_RETURN_IF_ERROR(CheckLabelCount(labels, images.config.classes, files.train));
  data.tensors = CvtTensors(images.config);
  data.official = InitialWeights::kCvt;
  if (form.from) {
    LS_ASSIGN_OR_RETURN(data.begin, StartingWeights(*form.from, classes, labels, "head.", data.tensors));
    AddStartingModel(*form.from, data.settings);
  }
  if (files.config.empty()) form.config = ToJson(images.config);
  data.files = {{"config.json", form.config}, {"labels.txt", LabelsText(labels)}};

  LS_ASSIGN_OR_RETURN(FingerprintHash hash, FingerprintHash::Create());
  for (const LabelledExample& file : divided.train) {
    LS_RETURN_IF_ERROR(DecodePixels(file, images.config.preprocessing.orientation).status());
    LS_RETURN_IF_ERROR(hash.Add(file.labels.front(), file.content.front()));
  }
  const std::unique_ptr<ImagePreprocessor> preprocessor = MakeImagePreprocessor(images.config.preprocessing, {});
  for (const std::vector<LabelledExample>* const part : {&divided.held_out, &divided.validation}) {
    for (const LabelledExample& file : *part) LS_RETURN_IF_ERROR(PrepareForModel(file, *preprocessor).status());
  }
  images.train = std::move(divided.train);
  images.held_out = std::move(divided.held_out);
  images.validation = std::move(divided.validation);
  data.call = absl::StrCat("classify ", ShellWord(images.held_out.front().place));
  LS_ASSIGN_OR_RETURN(data.settings["the training data's hash"], hash.Finish());
  AddConfig(ToJson(images.config), data.settings);
  data.settings["--image-side"] = absl::StrCat(augmentation.side);
  data.settings["--smallest-crop"] = absl::StrCat(augmentation.smallest_crop);
  data.settings["--colour-jitter"] = absl::StrCat(augmentation.colour_jitter);
  data.settings["--cutmix"] = absl::StrCat(augmentation.cutmix);
  return std::make_unique<TrainableImageClassifier>(std::move(data), std::move(images), augmentation);
}

}  // namespace longshort::models

#include "tests/server/fakes/scripted_classifier.h"

#include <utility>

#include "models/tokenizer/token_spans.h"

namespace longshort::server {
namespace {

models::ClassifierInfo ScriptedClassifierInfo() {
  models::ClassifierInfo info;
  info.classes = 3;
  info.width = 2;
  info.labels = {"cat", "dog", "owl"};
  info.parameters = 7;
  info.precision = "fp32";
  info.fingerprint = "f00d";
  return info;
}

class BytesPlusOne final : public models::TextEncoder {
 public:
  absl::StatusOr<models::DocumentBeginning> EncodeBeginning(std::string_view text, int64_t max) const override {
    models::DocumentBeginning beginning{.ids = {}, .tokens = static_cast<int64_t>(text.size())};
    for (const unsigned char byte : text.substr(0, max)) beginning.ids.push_back(byte + 1);
    beginning.ids.shrink_to_fit();
    return beginning;
  }
  absl::StatusOr<std::vector<models::TokenSpan>> Spans(std::string_view text) const override {
    return models::SpansOfBytes(text);
  }
  std::string_view Decode(int32_t /*id*/) const override { return {}; }
};

class CountingPreprocessor final : public models::ImagePreprocessor {
 public:
  int64_t pixels() const override { return 1; }
  absl::StatusOr<models::ImageHeader> ReadHeader(std::string_view bytes) const override {
    return models::ImageHeader{.format = models::ImageFormat::kPng,
                               .size = {1'000'000, static_cast<int64_t>(bytes.size())}};
  }
  absl::StatusOr<models::ClassifierItem> Decode(std::string_view bytes,
                                                const models::ImageHeader& /*header*/) const override {
    if (bytes == "broken") return absl::InvalidArgumentError("not an image");
    return ImageOf(static_cast<float>(bytes.size()));
  }
  absl::StatusOr<models::ClassifierItem> Convert(const models::RawImage& image) const override {
    const auto* bytes = std::get_if<absl::Span<const uint8_t>>(&image.values);
    if (bytes != nullptr) return Decode({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, {});
    return ImageOf(static_cast<float>(std::get<absl::Span<const float>>(image.values).size()));
  }

 private:
  static models::ClassifierItem ImageOf(float value) {
    return models::ImageItem{.height = 1, .width = 1, .values = {value}};
  }
};

}  // namespace

absl::Status ScriptedClassifierEngine::Classify(core::ClassificationRequest request,
                                                std::shared_ptr<core::ClassificationListener> listener) {
  const std::lock_guard lock(mutex_);
  absl::Status status = on_submit(submissions_++);
  if (status.ok()) items_.push_back({std::move(request), std::move(listener)});
  submitted_.notify_all();
  return status;
}

std::vector<ScriptedClassifierEngine::Item> ScriptedClassifierEngine::TakeItems(size_t count) {
  std::unique_lock lock(mutex_);
  submitted_.wait(lock, [&] { return items_.size() >= count; });
  return std::exchange(items_, {});
}

size_t ScriptedClassifierEngine::size() {
  const std::lock_guard lock(mutex_);
  return items_.size();
}

core::ServedClassifier TextClassifier(std::unique_ptr<core::ClassifierEngine> engine, int64_t documents) {
  core::ServedClassifier served{.info = ScriptedClassifierInfo(),
                                .tokenizer = std::make_shared<BytesPlusOne>(),
                                .preprocessor = nullptr,
                                .engine = std::move(engine)};
  served.info.architecture = "text_classifier";
  served.info.tokenizer = "bytes_plus_one";
  served.info.documents = documents;
  served.info.vectors = documents;
  served.info.vocabulary_size = 257;
  served.info.max_document_tokens = 8;
  return served;
}

core::ServedClassifier ImageClassifier(std::unique_ptr<core::ClassifierEngine> engine) {
  core::ServedClassifier served{.info = ScriptedClassifierInfo(),
                                .tokenizer = nullptr,
                                .preprocessor = std::make_shared<CountingPreprocessor>(),
                                .engine = std::move(engine)};
  served.info.architecture = "vil";
  served.info.input = models::ClassifierInput::kImage;
  served.info.channels = 3;
  return served;
}

core::ItemResult ScoresFor(int likeliest) {
  core::ItemResult scores{.row = {0, 1, 2}, .timings = {}};
  scores.row[likeliest] = 10;
  return scores;
}

}  // namespace longshort::server

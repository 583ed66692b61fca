#include "tests/bench/load/identity_model.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/tokenizer/token_spans.h"

namespace longshort::load {
namespace {

constexpr int64_t kMaxTokens = 1 << 20;
constexpr float kByteSteps = 255;

models::ClassifierInfo InfoOf(models::ClassifierInput input) {
  models::ClassifierInfo info;
  info.architecture = "identity";
  info.input = input;
  info.labels = {"even", "odd"};
  info.classes = 2;
  info.precision = "fp32";
  info.fingerprint = "identity";
  if (input == models::ClassifierInput::kImage) {
    info.channels = 3;
  } else {
    info.tokenizer = "bytes_plus_one";
    info.documents = 1;
    info.vocabulary_size = 257;
    info.max_document_tokens = kMaxTokens;
  }
  return info;
}

bool IsOdd(const models::ClassifierItem& item) {
  if (const auto* tokens = std::get_if<models::TokenItem>(&item); tokens != nullptr) {
    const std::vector<int32_t>& document = tokens->documents.front();
    return (document.front() + document.back()) % 2 != 0;
  }
  const std::vector<float>& values = std::get<models::ImageItem>(item).values;
  return static_cast<int>(kByteSteps * (values.front() + values.back())) % 2 != 0;
}

class IdentityClassifier final : public models::Classifier {
 public:
  explicit IdentityClassifier(models::ClassifierInput input) : info_(InfoOf(input)) {}

  const models::ClassifierInfo& info() const override { return info_; }

  absl::StatusOr<models::ClassifierResult> Run(absl::Span<const models::ClassifierItem* const> items,
                                               models::ClassifierOutput output) override {
    if (output != models::ClassifierOutput::kLogits) return absl::FailedPreconditionError("the model embeds nothing");
    logits_.clear();
    for (const models::ClassifierItem* item : items) {
      const float odd = IsOdd(*item) ? 1 : 0;
      logits_.insert(logits_.end(), {1 - odd, odd});
    }
    models::ClassifierResult result;
    result.rows = logits_;
    return result;
  }

 private:
  const models::ClassifierInfo info_;
  std::vector<float> logits_;  // [items, 2]
};

class ByteTokenizer final : public models::TextEncoder {
 public:
  absl::StatusOr<models::DocumentBeginning> EncodeBeginning(std::string_view text, int64_t max) const override {
    models::DocumentBeginning beginning{.ids = {}, .tokens = static_cast<int64_t>(text.size())};
    text = text.substr(0, max);
    beginning.ids.reserve(text.size());
    for (const char byte : text) beginning.ids.push_back(static_cast<unsigned char>(byte) + 1);
    return beginning;
  }
  absl::StatusOr<std::vector<models::TokenSpan>> Spans(std::string_view text) const override {
    return models::SpansOfBytes(text);
  }
  std::string_view Decode(int32_t /*id*/) const override { return {}; }
};

class PixelsAsTheyAre final : public models::ImagePreprocessor {
 public:
  int64_t pixels() const override { return 0; }  // an item has as many as the image
  absl::StatusOr<models::ImageHeader> ReadHeader(std::string_view /*bytes*/) const override {
    return absl::InvalidArgumentError("the identity model takes pixels only");
  }
  absl::StatusOr<models::ClassifierItem> Decode(std::string_view bytes,
                                                const models::ImageHeader& /*header*/) const override {
    return ReadHeader(bytes).status();
  }
  absl::StatusOr<models::ClassifierItem> Convert(const models::RawImage& image) const override {
    models::ImageItem item;
    item.height = image.height;
    item.width = image.width;
    if (const auto* bytes = std::get_if<absl::Span<const uint8_t>>(&image.values); bytes != nullptr) {
      for (const uint8_t byte : *bytes) item.values.push_back(static_cast<float>(byte) / kByteSteps);
    } else {
      const auto& values = std::get<absl::Span<const float>>(image.values);
      item.values.assign(values.begin(), values.end());
    }
    return item;
  }
};

}  // namespace

models::LoadedModel MakeIdentityModel(models::ClassifierInput input) {
  models::LoadedClassifier loaded;
  loaded.weights.places.push_back(
      {.device = {}, .info = InfoOf(input), .new_replica = [input](const models::WorkerDevice&) {
         return std::make_unique<IdentityClassifier>(input);
       }});
  if (input == models::ClassifierInput::kImage) {
    loaded.preprocessor = std::make_shared<PixelsAsTheyAre>();
  } else {
    loaded.tokenizer = std::make_shared<ByteTokenizer>();
  }
  return loaded;
}

}  // namespace longshort::load

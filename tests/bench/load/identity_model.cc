#include "tests/bench/load/identity_model.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace longshort::load {
namespace {

constexpr int64_t kMaxTokens = 1 << 20;
constexpr float kByteSteps = 255;

ClassifierInfo InfoOf(ClassifierInput input) {
  ClassifierInfo info;
  info.architecture = "identity";
  info.input = input;
  info.labels = {"even", "odd"};
  info.classes = 2;
  info.precision = "fp32";
  info.fingerprint = "identity";
  if (input == ClassifierInput::kImage) {
    info.channels = 3;
  } else {
    info.tokenizer = "bytes_plus_one";
    info.documents = 1;
    info.vocabulary_size = 257;
    info.max_document_tokens = kMaxTokens;
  }
  return info;
}

bool IsOdd(const ClassifierItem& item) {
  if (const auto* tokens = std::get_if<TokenItem>(&item); tokens != nullptr) {
    const std::vector<int32_t>& document = tokens->documents.front();
    return (document.front() + document.back()) % 2 != 0;
  }
  const std::vector<float>& values = std::get<ImageItem>(item).values;
  return static_cast<int>(kByteSteps * (values.front() + values.back())) % 2 != 0;
}

class IdentityClassifier final : public Classifier {
 public:
  explicit IdentityClassifier(ClassifierInput input) : info_(InfoOf(input)) {}

  const ClassifierInfo& info() const override { return info_; }

  absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) override {
    logits_.clear();
    for (const ClassifierItem* item : items) {
      const float odd = IsOdd(*item) ? 1 : 0;
      logits_.insert(logits_.end(), {1 - odd, odd});
    }
    ClassifierResult result;
    result.logits = logits_;
    return result;
  }

 private:
  const ClassifierInfo info_;
  std::vector<float> logits_;  // [items, 2]
};

class ByteTokenizer final : public TextEncoder {
 public:
  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t most) const override {
    DocumentBeginning beginning{.ids = {}, .tokens = static_cast<int64_t>(text.size())};
    text = text.substr(0, most);
    beginning.ids.reserve(text.size());
    for (const char byte : text) beginning.ids.push_back(static_cast<unsigned char>(byte) + 1);
    return beginning;
  }
};

class PixelsAsTheyAre final : public ImagePreprocessor {
 public:
  int64_t pixels() const override { return 0; }  // an item has as many as the image
  absl::StatusOr<ImageHeader> ReadHeader(std::string_view /*bytes*/) const override {
    return absl::InvalidArgumentError("the identity model takes pixels only");
  }
  absl::StatusOr<ClassifierItem> Decode(std::string_view bytes, const ImageHeader& /*header*/) const override {
    return ReadHeader(bytes).status();
  }
  absl::StatusOr<ClassifierItem> Convert(const RawImage& image) const override {
    ImageItem item;
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

LoadedModel MakeIdentityModel(ClassifierInput input) {
  LoadedClassifier loaded;
  loaded.weights.places.push_back({.device = {}, .info = InfoOf(input), .new_replica = [input](const WorkerDevice&) {
                                     return std::make_unique<IdentityClassifier>(input);
                                   }});
  if (input == ClassifierInput::kImage) {
    loaded.preprocessor = std::make_shared<PixelsAsTheyAre>();
  } else {
    loaded.tokenizer = std::make_shared<ByteTokenizer>();
  }
  return loaded;
}

}  // namespace longshort::load

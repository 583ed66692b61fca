// What the engine needs of a classifier, in plain types: no LibTorch, no gRPC, no OpenCV.
//
// Classifiers are one-shot: a batch of items in, one score per class and item out, nothing kept between calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model_weights.h"

namespace longshort::models {

enum class ClassifierInput {
  kText,           // documents, tokenised by a TextEncoder
  kPixelSequence,  // an image as a sequence of grey values, one token each
  kImage,          // an image as channels
};

// What a classifier is.
struct ClassifierInfo {
  std::string architecture;  // "text_classifier", "vil" or "cvt"
  ClassifierInput input = ClassifierInput::kText;
  int64_t classes = 0;
  std::vector<std::string> labels;  // labels.txt: [classes], or empty
  int64_t parameters = 0;
  std::string precision;    // "fp32", or "bf16" if it computes so on any device: on a GPU
  std::string fingerprint;  // hex SHA-256 of the model's files
  // Of a GPU's memory, what each worker there needs beside the weights.
  int64_t gpu_workspace_bytes = 0;

  // Token sequences only.
  std::string tokenizer;        // as in config.json: "bytes_plus_one", ..., "none"
  int64_t documents = 0;        // how many documents make one item: 1 or 2
  int64_t vocabulary_size = 0;  // ids are below it; id 0 is padding
  int64_t max_document_tokens = 0;

  // Images only.
  int64_t channels = 0;
};

// A document, or two, in token ids; each id in [0, vocabulary_size), 0 being masked. At least one id of a document is
// not 0, and there are at most max_document_tokens.
struct TokenItem {
  std::vector<std::vector<int32_t>> documents;
};

// An image that the model's preprocessing made: normalised values, [channels, height, width].
struct ImageItem {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

using ClassifierItem = std::variant<TokenItem, ImageItem>;

// What one batch computed, for tests and metrics.
struct ClassifierCounts {
  // Multiply-adds of all matrix products and convolutions that depend on the items: linear layers, projections, scores,
  // weighted sums.
  int64_t multiply_adds = 0;
};

struct ClassifierResult {
  // [items, classes], row i is of item i. Owned by the classifier, valid until its next call.
  absl::Span<const float> logits;
  ClassifierCounts counts;
};

// One thread at a time calls it: a worker owns its replica. On a GPU it has what makes its batches fast (graphs).
//
// A result depends on the weights, the precision and the item only: not on the other items of a batch (up to rounding
// in the library's matrix products).
class Classifier {
 public:
  virtual ~Classifier() = default;

  virtual const ClassifierInfo& info() const = 0;

  // Token sequences of any mix of lengths are one batch, without work on padding. Images of one batch have one size.
  // Errors: INVALID_ARGUMENT for an item that breaks what is said above, naming its index (nothing is run), INTERNAL if
  // the library fails.
  virtual absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) = 0;

  // There is nothing to do for a while: lets others have what only a batch needs. The next batch takes it
  // again.
  virtual void Rest() {}
};

using ClassifierWeights = ModelWeights<Classifier, ClassifierInfo>;

// An image whose pixels lie in memory: rows from the top, [height, width, channels], RGB or grey.
struct RawImage {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;                                                     // 1 or 3
  std::variant<absl::Span<const uint8_t>, absl::Span<const float>> values;  // floats in [0, 1]
};

enum class ImageFormat { kJpeg, kPng, kWebp };

// Pixels as they are stored, before any orientation.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;

  int64_t pixels() const { return height * width; }
  bool operator==(const ImageSize&) const = default;
};

// What an encoded image says of itself before its pixels: read once, and kept until the image is decoded.
struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  ImageSize size;  // of its first frame
  // JPEG only: where the reading of the header ended, and the EXIF orientation (1 to 8) if it was found before that.
  uint64_t end = 0;
  std::optional<int> orientation = std::nullopt;
};

// Images to the items of one classifier, by the preprocessing that its config.json names. Immutable: any thread may use
// it.
class ImagePreprocessor {
 public:
  virtual ~ImagePreprocessor() = default;
  // Of an item that it makes.
  virtual int64_t pixels() const = 0;
  // The header of a JPEG, PNG or WebP file. Errors: INVALID_ARGUMENT for another format, which the message names, and
  // for what is broken or beyond the limits.
  virtual absl::StatusOr<ImageHeader> ReadHeader(std::string_view bytes) const = 0;
  // Decodes the image whose header that is. Errors: INVALID_ARGUMENT saying what is wrong with it, RESOURCE_EXHAUSTED
  // if there is no memory for it.
  virtual absl::StatusOr<ClassifierItem> Decode(std::string_view bytes, const ImageHeader& header) const = 0;
  // Both in one.
  absl::StatusOr<ClassifierItem> Decode(std::string_view bytes) const {
    const absl::StatusOr<ImageHeader> header = ReadHeader(bytes);
    if (!header.ok()) return header.status();
    return Decode(bytes, *header);
  }
  // Pixels as they are; resized and cropped like a decoded image.
  virtual absl::StatusOr<ClassifierItem> Convert(const RawImage& image) const = 0;
};

}  // namespace longshort::models

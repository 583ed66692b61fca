// The interface of a classifier, as the engine uses it. Plain types only: no LibTorch, no gRPC.
//
// A call takes a batch of items and returns one score for each class and item. A classifier keeps no state between
// calls.
#pragma once

#include <cstdint>
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

// Describes a classifier.
struct ClassifierInfo {
  std::string architecture;  // "text_classifier", "vil" or "cvt"
  ClassifierInput input = ClassifierInput::kText;
  int64_t classes = 0;
  std::vector<std::string> labels;  // labels.txt: [classes], or empty
  int64_t parameters = 0;
  std::string precision;    // "fp32"; "bf16" if it computes in bfloat16 on any device, which only GPUs do
  std::string fingerprint;  // hex SHA-256 of the model's files
  // GPU memory that each worker needs in addition to the weights.
  int64_t gpu_workspace_bytes = 0;

  // Token sequences only.
  std::string tokenizer;        // as in config.json: "bytes_plus_one", ..., "none"
  int64_t documents = 0;        // documents per item: 1 or 2
  int64_t vocabulary_size = 0;  // ids are below it; id 0 is padding
  int64_t max_document_tokens = 0;

  // Images only.
  int64_t channels = 0;
};

// One or two documents as token ids in [0, vocabulary_size); id 0 is masked. A document has at least one id other than
// 0, and at most max_document_tokens ids.
struct TokenItem {
  std::vector<std::vector<int32_t>> documents;
};

// An image after the model's preprocessing: normalised values, [channels, height, width].
struct ImageItem {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

using ClassifierItem = std::variant<TokenItem, ImageItem>;

// Work done for one batch, for tests and metrics.
struct ClassifierCounts {
  // Multiply-adds of all matrix products and convolutions that depend on the items: linear layers, projections, scores,
  // weighted sums.
  int64_t multiply_adds = 0;
};

struct ClassifierResult {
  // [items, classes]; row i belongs to item i. Owned by the classifier, valid until its next call.
  absl::Span<const float> logits;
  ClassifierCounts counts;
};

// Thread: one at a time; a worker owns its replica. On a GPU, a replica also owns the graphs of its batches.
//
// A result depends on the weights, the precision and the item only: not on the other items of a batch (up to rounding
// in the library's matrix products).
class Classifier {
 public:
  virtual ~Classifier() = default;

  virtual const ClassifierInfo& info() const = 0;

  // A batch may mix token sequences of any lengths; padding costs nothing. All images of a batch have the same size.
  // Errors: INVALID_ARGUMENT for an item that violates the rules above, with its index (nothing is run); INTERNAL if
  // the library fails.
  virtual absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) = 0;

  // Releases resources that only a batch needs, while the worker is idle. The next batch acquires them again.
  virtual void Rest() {}
};

using ClassifierWeights = ModelWeights<Classifier, ClassifierInfo>;

// Pixels in memory, top row first: [height, width, channels], RGB or grey.
struct RawImage {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;                                                     // 1 or 3
  std::variant<absl::Span<const uint8_t>, absl::Span<const float>> values;  // floats in [0, 1]
};

enum class ImageFormat { kJpeg, kPng, kWebp };

// Size in pixels as stored, before it is turned upright.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;

  int64_t pixels() const { return height * width; }
  bool operator==(const ImageSize&) const = default;
};

// The header of an encoded image: parsed once, and kept until the image is decoded.
struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  ImageSize size;  // of its first frame
};

// Converts images to items of one classifier, with the preprocessing that config.json specifies. Immutable, so
// thread-safe.
class ImagePreprocessor {
 public:
  virtual ~ImagePreprocessor() = default;
  // Pixels of an item.
  virtual int64_t pixels() const = 0;
  // Parses the header of a JPEG, PNG or WebP file.
  // Errors: INVALID_ARGUMENT for another format (named in the message), a broken file, or one beyond the limits.
  virtual absl::StatusOr<ImageHeader> ReadHeader(std::string_view bytes) const = 0;
  // Decodes the image that has this header.
  // Errors: INVALID_ARGUMENT with the reason if the image is broken, RESOURCE_EXHAUSTED if there is no memory for it.
  virtual absl::StatusOr<ClassifierItem> Decode(std::string_view bytes, const ImageHeader& header) const = 0;
  // ReadHeader, then Decode.
  absl::StatusOr<ClassifierItem> Decode(std::string_view bytes) const {
    const absl::StatusOr<ImageHeader> header = ReadHeader(bytes);
    if (!header.ok()) return header.status();
    return Decode(bytes, *header);
  }
  // Converts raw pixels, resized and cropped like a decoded image.
  virtual absl::StatusOr<ClassifierItem> Convert(const RawImage& image) const = 0;
};

}  // namespace longshort::models

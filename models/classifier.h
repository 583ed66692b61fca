// The interface of a classifier, as the engine uses it. Plain types only: no LibTorch, no gRPC.
//
// A call takes a batch of items and returns one row of numbers for each: its logits, or its embedding. A classifier
// keeps no state between calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model_weights.h"

namespace longshort::models {

enum class ClassifierInput {
  kText,           // documents, tokenised by a TextEncoder
  kPixelSequence,  // an image as a sequence of grey values, one token each
  kImage,          // an image as channels
};

// What a classifier computes for each item of a batch. Features are what its head reads.
enum class ClassifierOutput {
  kLogits,             // [classes]
  kLogitsAndFeatures,  // [classes + vectors * width]
  kFeatures,           // [width]: of one document, or of an image
  kMeanOfTokens,       // [width]: the mean of the last layer's token rows, of one document
};

// What the logits mean.
enum class ProblemType {
  kSingleLabel,  // "single_label_classification": one class, by a softmax
  kMultiLabel,   // "multi_label_classification": any number of classes, by a sigmoid each
  kRegression,   // "regression": the logits themselves
};

// Describes a classifier.
struct ClassifierInfo {
  std::string architecture;  // "text_classifier", "vil" or "cvt"
  ClassifierInput input = ClassifierInput::kText;
  int64_t classes = 0;  // 0: an encoder without a head, which has no logits
  ProblemType problem_type = ProblemType::kSingleLabel;
  int64_t width = 0;                // of an embedding
  int64_t vectors = 1;              // that the head reads for an item: 2 if it reads one for each of two documents
  bool has_cls = false;             // the head reads a CLS row; otherwise the mean of all rows
  std::vector<std::string> labels;  // labels.txt: [classes], or empty
  int64_t parameters = 0;
  std::string precision;    // "fp32"; "bf16" or "int8" if it computes products in that on any device
  std::string fingerprint;  // hex SHA-256 of the model's files
  // GPU memory that each worker needs in addition to the weights.
  int64_t gpu_workspace_bytes = 0;

  // Token sequences only.
  std::string tokenizer;     // as in config.json: "bytes_plus_one", ..., "none"
  int64_t documents = 0;     // documents per item: 1 or 2
  bool joins_pairs = false;  // an item may also have 2 documents, which the model joins to one
  bool trained_on_pairs = false;
  int64_t vocabulary_size = 0;      // ids are below it
  int32_t padding_id = 0;           // tokens of this id are masked
  int64_t max_document_tokens = 0;  // of a document, or of a joined pair

  // Images only.
  int64_t channels = 0;

  int64_t MaxDocuments() const { return joins_pairs ? 2 : documents; }
  // Numbers in a row of this output.
  int64_t WidthOf(ClassifierOutput output) const {
    if (output == ClassifierOutput::kLogits) return classes;
    return output == ClassifierOutput::kLogitsAndFeatures ? classes + vectors * width : width;
  }
  // Errors: FAILED_PRECONDITION if the classifier has no such output.
  absl::Status CheckHas(ClassifierOutput output) const {
    if (output == ClassifierOutput::kLogits && classes == 0) {
      return absl::FailedPreconditionError("the model has no head: it embeds, but does not classify");
    }
    if (output == ClassifierOutput::kMeanOfTokens && input == ClassifierInput::kImage) {
      return absl::FailedPreconditionError("the model takes images, so it has no mean of tokens");
    }
    return absl::OkStatus();
  }
};

// One or two documents as token ids in [0, vocabulary_size); padding_id is masked. A document has at least one other
// id. A document, or a pair that is joined, has at most max_document_tokens ids.
struct TokenItem {
  std::vector<std::vector<int32_t>> documents;
};

// An image after the model's preprocessing: normalised values, [channels, height, width]. An image of bytes keeps
// these, and takes a quarter of the memory.
struct ImageItem {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;  // empty if there are bytes
  std::vector<uint8_t> bytes = {};
  // The value of each byte, [channels][256]; shared by all images of a preprocessor.
  std::shared_ptr<const std::vector<float>> values_of_bytes = nullptr;

  // The number of its values.
  int64_t size() const { return static_cast<int64_t>(values.size() + bytes.size()); }
  // Writes its values, and returns their end.
  float* WriteValues(float* to) const {
    if (bytes.empty()) return std::copy(values.begin(), values.end(), to);
    const int64_t plane = height * width;
    const float* value_of = values_of_bytes->data();
    for (auto begin = bytes.begin(); begin != bytes.end(); begin += plane, value_of += 256) {
      to = std::transform(begin, begin + plane, to, [value_of](uint8_t byte) { return value_of[byte]; });
    }
    return to;
  }
};

using ClassifierItem = std::variant<TokenItem, ImageItem>;

// Work done for one batch, for tests and metrics.
struct ClassifierCounts {
  // Multiply-adds of all matrix products and convolutions that depend on the items: linear layers, projections, scores,
  // weighted sums.
  int64_t multiply_adds = 0;
};

struct ClassifierResult {
  // [items, WidthOf(output)]; row i belongs to item i. Owned by the classifier, valid until its next call.
  absl::Span<const float> rows;
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

  // Computes `output` of a batch, which may mix token sequences of any lengths; padding costs nothing. All images of a
  // batch have the same size.
  // Errors: those of ClassifierInfo::CheckHas; INVALID_ARGUMENT for an item that violates the rules above, with its
  // index (nothing is run); INTERNAL if the library fails.
  virtual absl::StatusOr<ClassifierResult> Run(absl::Span<const ClassifierItem* const> items,
                                               ClassifierOutput output) = 0;
  absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) {
    return Run(items, ClassifierOutput::kLogits);
  }

  // Run in two parts, for a device that works while the caller does something else: FinishBatch waits for the first
  // batch that has begun and is not finished. REQUIRES: fewer than batches_at_once() batches have begun; `items` need
  // not stay valid after BeginBatch. Errors: those of Run; the batch has ended after an error of either part.
  virtual absl::Status BeginBatch(absl::Span<const ClassifierItem* const> items, ClassifierOutput output) {
    begun_ = Run(items, output);
    return begun_.status();
  }
  virtual absl::StatusOr<ClassifierResult> FinishBatch() { return std::move(begun_); }
  virtual int64_t batches_at_once() const { return 1; }

  // Releases resources that only a batch needs, while the worker is idle. The next batch acquires them again.
  virtual void Rest() {}

 private:
  absl::StatusOr<ClassifierResult> begun_ = ClassifierResult();
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

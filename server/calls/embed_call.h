// Embedding of texts or images by a classifier: the call and its result.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/requests/classifier_engine.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// Which rows of the last layer an embedding is made of.
enum class Pooling {
  kHead,     // those that the model's head reads
  kCls,      // the CLS row
  kMean,     // the mean of all rows
  kUnknown,  // a value that no protocol defines
};

struct EmbedOptions {
  Pooling pooling = Pooling::kHead;
  bool normalize = false;  // to length 1
  bool truncate = false;   // for texts
};

struct EmbedCall {
  ModelReference model = {};
  // For models of texts.
  std::vector<TextInput> texts = {};
  // For models that read two documents as one: one for each of `texts`. Otherwise empty.
  std::vector<TextInput> second_texts = {};
  // For models of images.
  std::vector<ImageInput> images = {};
  EmbedOptions options = {};
};

struct Embedding {
  std::vector<float> values;               // [ClassifierInfo::width]
  std::vector<DocumentReading> documents;  // of a text
  core::ClassificationTimings timings;
};

struct EmbedResult {
  // One for each text or image, in request order. An error concerns its image only; errors of texts end the call.
  std::vector<absl::StatusOr<Embedding>> embeddings;
  Usage usage;
  ModelReference model = {};
};

}  // namespace longshort::server

// Calls to classifiers and their results: classification of images, and embedding of texts or images.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/classifier_engine.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// What the answer contains for each item.
struct ClassOptions {
  int64_t top_k = 0;  // 0: the default
  bool all_logits = false;
  bool all_probabilities = false;
  bool features = false;
};

struct ClassProbability {
  int32_t index = 0;
  std::string_view label;  // owned by the model; empty if the model has no labels
  float probability = 0;   // softmax over all classes, or what the model's problem type says
};

// A classifier's result for one item.
struct Classification {
  std::vector<ClassProbability> classes;  // likeliest first
  std::vector<float> logits;              // [classes], if requested
  std::vector<float> probabilities;       // [classes], if requested
  std::vector<float> features;            // [vectors * width] (ClassifierInfo), if requested
  core::ClassificationTimings timings;
};

struct ClassifyCall {
  ModelReference model = {};
  std::vector<ImageInput> images = {};
  ClassOptions options = {};
};

struct ClassifyResult {
  // One result for each image, in request order. An error concerns its image only.
  std::vector<absl::StatusOr<Classification>> images;
  ModelReference model = {};
  // Owns the labels that the results view.
  std::shared_ptr<const core::ServedClassifier> classifier;
};

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

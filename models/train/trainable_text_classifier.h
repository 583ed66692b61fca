// Text classifiers for the trainer: labelled documents as ids, and the served network over trained weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/train/trainable_classifier.h"
#include "models/weights/text_classifier_config.h"

namespace longshort {

struct TextTrainingFiles {
  std::string config;      // config.json of the model to train
  std::string vocabulary;  // vocabulary.txt, for the tokenizers that need one
  std::string train;       // JSON Lines (labelled_texts.h)
  std::string held_out;    // the same
};

struct TextVariationOptions {
  int64_t crop_tokens = 0;   // longer documents are trained on in random pieces of this length; 0: whole
  double masked_tokens = 0;  // this part of a document's tokens is masked, other ones each time
};

// Reads and tokenises all of the files. Documents longer than the model takes are cut at their end, as a request with
// `truncate` is.
// Errors: those of reading; INVALID_ARGUMENT naming the file and what is wrong with it.
absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableTextClassifier(const TextTrainingFiles& files,
                                                                                 const TextVariationOptions& variation);

}  // namespace longshort

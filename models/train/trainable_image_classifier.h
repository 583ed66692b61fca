// Image classifiers for the trainer: labelled images in memory, and the served network over trained weights.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/train/image_augmentation.h"
#include "models/train/trainable_classifier.h"

namespace longshort {

struct ImageTrainingFiles {
  std::string config;    // config.json of the model to train: a CvT*-LS
  std::string train;     // a folder of class folders (image_folder.h)
  std::string held_out;  // the same
};

// Reads and decodes all images. Training images are kept as 8-bit pixels; held-out images are prepared as the server
// does.
// Errors: those of reading and decoding; INVALID_ARGUMENT naming the file and what is wrong with it.
absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableImageClassifier(
    const ImageTrainingFiles& files, const AugmentationOptions& augmentation);

}  // namespace longshort

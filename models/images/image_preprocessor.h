// Images to what the classifiers take: channels for the vision models, grey tokens for the pixel-sequence models.
#pragma once

#include <memory>

#include "models/classifier.h"
#include "models/images/image_header.h"
#include "models/weights/image_preprocessing_config.h"

namespace longshort::models {

// Makes an ImageItem of 3 channels, as the models' evaluation did: resize, centre crop, divide by 255, normalise. Grey
// pixels count for all three channels.
// Errors beyond the interface's: INVALID_ARGUMENT for an image that OpenCV would resize to more pixels than the limit.
std::unique_ptr<ImagePreprocessor> MakeImagePreprocessor(const ImagePreprocessingConfig& config,
                                                         const ImageLimits& limits);

// Makes a TokenItem of one document with height x width ids, row by row: the grey value 0..255 of each pixel is its id.
// Images of another size are resized to exactly that size; colours become grey as 0.2989 R + 0.5870 G + 0.1140 B.
// Errors beyond the interface's: INVALID_ARGUMENT for an image that is all black, since id 0 is masked.
std::unique_ptr<ImagePreprocessor> MakePixelSequencePreprocessor(const PixelSequenceConfig& config,
                                                                 const ImageLimits& limits);

}  // namespace longshort::models

// Converts images to items of classifiers: channels for the vision models, grey tokens for the pixel-sequence models.
#pragma once

#include <memory>

#include "models/classifier.h"
#include "models/images/image_header.h"
#include "models/weights/image_preprocessing_config.h"

namespace longshort::models {

// Raw pixels as floats in [0, 1] may exceed that range by rounding errors, and are clamped. If all are bytes divided by
// 255, up to such errors, they give the item of those bytes. Others are resized without rounding, which bytes are not.

// Makes an ImageItem of 3 channels, as in the models' evaluation: resize, crop the centre, divide by 255, normalise. A
// grey value is used for all three channels.
// Errors: those of the interface; INVALID_ARGUMENT for an image that OpenCV would resize to more pixels than the limit.
std::unique_ptr<ImagePreprocessor> MakeImagePreprocessor(const ImagePreprocessingConfig& config,
                                                         const ImageLimits& limits);

// Makes a TokenItem of one document with height x width ids, row by row: the id of a pixel is its grey value 0..255.
// Images of another size are resized to exactly that size. The grey value of a colour is 0.2989 R + 0.5870 G + 0.1140
// B. Errors: those of the interface; INVALID_ARGUMENT for an image that is all black, because id 0 is masked.
std::unique_ptr<ImagePreprocessor> MakePixelSequencePreprocessor(const PixelSequenceConfig& config,
                                                                 const ImageLimits& limits);

}  // namespace longshort::models

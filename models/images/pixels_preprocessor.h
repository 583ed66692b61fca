// What both kinds of preprocessing share: how an image becomes pixels, before the pixels become an item.
#pragma once

#include <string_view>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "models/classifier.h"
#include "models/images/decode_image.h"
#include "models/images/image_header.h"
#include "models/images/image_limits.h"
#include "models/images/raw_image.h"

namespace longshort {

// `make_item.pixels()` is what its items have, and `make_item(values, size, channels)` gives an
// absl::StatusOr<ClassifierItem> of pixels that are within the limits:
//   values  [size.height, size.width, channels], a span of uint8_t, or of float in [0, 1]; 1 or 3 channels
template <typename MakeItem>
class PixelsPreprocessor final : public ImagePreprocessor {
 public:
  PixelsPreprocessor(const ImageLimits& limits, MakeItem make_item)
      : limits_(limits), make_item_(std::move(make_item)) {}

  int64_t pixels() const override { return make_item_.pixels(); }

  int64_t PixelsToDecode(std::string_view bytes) const override {
    const auto header = ReadImageHeader(bytes);
    if (!header.ok() || !CheckSize(header->size, limits_).ok()) return 0;
    return header->size.height * header->size.width;
  }

  absl::StatusOr<ClassifierItem> Decode(std::string_view bytes) const override {
    LS_ASSIGN_OR_RETURN(const RgbImage image, DecodeImage(bytes, limits_));
    return make_item_(absl::MakeConstSpan(image.values), image.size, 3);
  }

  absl::StatusOr<ClassifierItem> Convert(const RawImage& image) const override {
    LS_RETURN_IF_ERROR(CheckRawImage(image, limits_));
    return std::visit(
        [&](auto values) {
          return make_item_(values, ImageSize{image.height, image.width}, image.channels);
        },
        image.values);
  }

 private:
  const ImageLimits limits_;
  const MakeItem make_item_;
};

}  // namespace longshort

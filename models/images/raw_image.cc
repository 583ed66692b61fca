#include "models/images/raw_image.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/image_header.h"

namespace longshort {
namespace {

absl::Status CheckFloats(absl::Span<const float> values) {
  const auto outside = [](float value) { return !(value >= 0.0F && value <= 1.0F); };
  const auto found = std::find_if(values.begin(), values.end(), outside);
  if (found == values.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("value %d of the image is %g; it must be in [0, 1]", found - values.begin(), *found));
}

}  // namespace

absl::Status CheckRawImage(const RawImage& image, const ImageLimits& limits) {
  LS_RETURN_IF_ERROR(CheckSize({image.height, image.width}, limits));
  if (image.channels != 1 && image.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image has %d channels; it must have 1 or 3", image.channels));
  }
  const auto count = static_cast<int64_t>(std::visit([](const auto& values) { return values.size(); }, image.values));
  if (count != image.height * image.width * image.channels) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image has %d values; %d x %d x %d pixels and channels have %d", count, image.height,
                        image.width, image.channels, image.height * image.width * image.channels));
  }
  const auto* floats = std::get_if<absl::Span<const float>>(&image.values);
  return floats == nullptr ? absl::OkStatus() : CheckFloats(*floats);
}

}  // namespace longshort

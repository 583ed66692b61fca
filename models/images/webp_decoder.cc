#include "models/images/webp_decoder.h"

#include <webp/decode.h>

#include <cstdint>

#include "absl/strings/str_format.h"

namespace longshort {

absl::StatusOr<StoredPixels> DecodeWebpPixels(std::string_view file, const ImageSize& size) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return absl::InternalError("libwebp has another version than its headers");
  VP8StatusCode status = WebPGetFeatures(bytes, file.size(), &config.input);
  if (status == VP8_STATUS_OK && (config.input.width != size.width || config.input.height != size.height)) {
    return absl::InvalidArgumentError("the image is broken: its data are not what its header says");
  }
  StoredPixels pixels;
  if (status == VP8_STATUS_OK) {
    pixels = StoredPixels(size, 3);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {
        .rgba = pixels.bytes.data(), .stride = static_cast<int>(pixels.RowBytes()), .size = pixels.bytes.size()};
    status = WebPDecode(bytes, file.size(), &config);
  }
  if (status == VP8_STATUS_OK) return pixels;
  if (status == VP8_STATUS_OUT_OF_MEMORY) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("there is no memory to decode an image of %d x %d pixels", size.width, size.height));
  }
  return absl::InvalidArgumentError("the WebP image cannot be decoded: its data are broken or end early");
}

}  // namespace longshort

#include "models/images/jpeg_decoder.h"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
// libjpeg's header needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <array>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

// What libjpeg's callbacks know. One that fails jumps over the frames of libjpeg to where it was called, so nothing in
// between may have a destructor.
struct Reading {
  jpeg_error_mgr errors = {};
  std::jmp_buf start = {};
  bool failed = false;
  bool without_memory = false;
  std::array<char, JMSG_LENGTH_MAX> error = {};
};

[[noreturn]] void OnError(j_common_ptr info) {
  auto& reading = *static_cast<Reading*>(info->client_data);
  reading.failed = true;
  reading.without_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
  info->err->format_message(info, reading.error.data());
  std::longjmp(reading.start, 1);
}

void OnMessage(j_common_ptr /*info*/) {}

bool HasInks(const jpeg_decompress_struct& info) { return info.num_components == 4; }

// libjpeg fails by a jump back to here, so nothing in this frame has a destructor.
bool ReadHeader(jpeg_decompress_struct& info, const std::string& file, Reading& reading) {
  if (setjmp(reading.start) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = HasInks(info) ? JCS_CMYK : JCS_RGB;
  return true;
}

// The same of this one. `rows` has output_height * output_width pixels of the colour space that was asked for.
void ReadRows(jpeg_decompress_struct& info, uint8_t* rows, Reading& reading) {
  if (setjmp(reading.start) != 0) return;
  jpeg_start_decompress(&info);
  const size_t row_bytes = static_cast<size_t>(info.output_width) * static_cast<size_t>(info.output_components);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = rows + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
}

// value * of / 255, rounded.
int Part(int value, int of) {
  const int product = value * of + 128;
  return (product + (product >> 8)) >> 8;
}

// Cyan, magenta, yellow and black, each stored as 255 less its ink, as Adobe's programs do.
StoredPixels ColoursOfInks(const StoredPixels& inks) {
  StoredPixels colours(inks.size, 3);
  uint8_t* out = colours.bytes.data();
  for (size_t at = 0; at < inks.bytes.size(); at += 4) {
    const int light = inks.bytes[at + 3];
    for (size_t ink = 0; ink < 3; ++ink) *out++ = static_cast<uint8_t>(light - Part(255 - inks.bytes[at + ink], light));
  }
  return colours;
}

}  // namespace

absl::StatusOr<StoredPixels> DecodeJpegPixels(const std::string& file, const ImageSize& size) {
  Reading reading;
  jpeg_decompress_struct info = {};
  info.err = jpeg_std_error(&reading.errors);
  info.client_data = &reading;
  reading.errors.error_exit = OnError;
  reading.errors.output_message = OnMessage;

  const absl::Cleanup destroy = [&info] { jpeg_destroy_decompress(&info); };
  StoredPixels pixels;
  if (ReadHeader(info, file, reading)) {
    if (info.image_width != size.width || info.image_height != size.height) {
      return absl::InvalidArgumentError("the image is broken: its data are not what its header says");
    }
    pixels = StoredPixels(size, HasInks(info) ? 4 : 3);
    ReadRows(info, pixels.bytes.data(), reading);
  }
  if (reading.without_memory) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("there is no memory to decode an image of %d x %d pixels", size.width, size.height));
  }
  if (reading.failed) {
    return absl::InvalidArgumentError(absl::StrCat("the JPEG image cannot be decoded: ", reading.error.data()));
  }
  return pixels.channels == 4 ? ColoursOfInks(pixels) : pixels;
}

}  // namespace longshort

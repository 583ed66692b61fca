#include "models/images/png_decoder.h"

#include <png.h>

#include <array>
#include <bit>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

// What libpng's callbacks know of an image. A callback that fails jumps over the frames of libpng to where it was
// called, so nothing in between may have a destructor.
struct Reading {
  StoredPixels* pixels = nullptr;
  bool complete = false;
  bool without_memory = false;
  std::array<char, 128> error = {};
};

Reading& ReadingOf(png_structp png) { return *static_cast<Reading*>(png_get_progressive_ptr(png)); }

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  std::snprintf(reading.error.data(), reading.error.size(), "%s", message);
  png_longjmp(png, 1);
}

void OnWarning(png_structp /*png*/, png_const_charp /*message*/) {}

bool MakePixels(StoredPixels& pixels, const ImageSize& size, int sample_bytes) {
  try {
    pixels = StoredPixels(size, 3, sample_bytes);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// The header was read: says what the rows are to become.
void OnHeader(png_structp png, png_infop info) {
  const bool grey = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) == 0;
  const bool wide = png_get_bit_depth(png, info) == 16;
  png_set_strip_alpha(png);
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (grey && png_get_bit_depth(png, info) < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (grey) png_set_gray_to_rgb(png);
  if (wide && std::endian::native == std::endian::little) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);

  Reading& reading = ReadingOf(png);
  const ImageSize size = {png_get_image_height(png, info), png_get_image_width(png, info)};
  reading.without_memory = !MakePixels(*reading.pixels, size, wide ? 2 : 1);
  if (reading.without_memory) png_error(png, "no memory");
  if (png_get_rowbytes(png, info) != reading.pixels->RowBytes()) png_error(png, "rows of another length");
}

// `row` is null where a pass of an interlaced image changes nothing.
void OnRow(png_structp png, png_bytep row, png_uint_32 y, int /*pass*/) {
  if (row != nullptr) png_progressive_combine_row(png, ReadingOf(png).pixels->Row(y), row);
}

// Whether the last row of the last of an interlaced image's seven passes was read.
bool HasAllRows(png_structp png, png_infop info) {
  if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE) return png_get_current_pass_number(png) >= 7;
  return png_get_current_row_number(png) >= png_get_image_height(png, info);
}

// libpng fails by a jump back to here, so nothing in this frame has a destructor.
void Read(png_structp png, png_infop info, std::string& file, Reading& reading) {
  if (setjmp(png_jmpbuf(png)) != 0) return;
  png_set_progressive_read_fn(png, &reading, OnHeader, OnRow, nullptr);
  png_process_data(png, info, reinterpret_cast<png_bytep>(file.data()), file.size());
  reading.complete = HasAllRows(png, info);
}

absl::Status NoMemory(const ImageSize& size) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("there is no memory to decode an image of %d x %d pixels", size.width, size.height));
}

}  // namespace

absl::StatusOr<StoredPixels> DecodePngPixels(std::string& file, const ImageSize& size) {
  StoredPixels pixels;
  Reading reading{.pixels = &pixels};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return NoMemory(size);
  }
  Read(png, info, file, reading);
  png_destroy_read_struct(&png, &info, nullptr);
  if (reading.without_memory) return NoMemory(size);
  if (reading.error[0] != '\0') {
    return absl::InvalidArgumentError(absl::StrCat("the image cannot be decoded: ", reading.error.data()));
  }
  if (!reading.complete || pixels.size != size) {
    return absl::InvalidArgumentError("the image cannot be decoded: its data end before its last row");
  }
  return pixels;
}

}  // namespace longshort

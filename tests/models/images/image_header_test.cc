#include "models/images/image_header.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/decode_image.h"
#include "opencv2/core.hpp"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"

namespace longshort::models::image_header_test {

using Words = std::vector<std::string>;

struct Field {
  std::string name;     // of the file
  size_t width_offset;  // where its width and height stand
  size_t height_offset;
  std::string bytes;  // 50,000 in the format's way
};

// 50,000 = 0xC350.
const std::string kBig2 = "\xC3\x50";

size_t FrameHeaderOf(const std::string& jpeg) { return jpeg.find("\xFF\xC0"); }

// A header that says 50,000 x 50,000 costs nothing: it is refused before anything of that size is made.
TEST(ImageHeader, RefusesHugeImagesBeforeDecoding) {
  const std::string jpeg = ReadImageFile("colours_444.jpg");
  const size_t frame = FrameHeaderOf(jpeg);
  const std::vector<Field> fields = {
      {"colours.png", 16, 20, std::string("\0\0", 2) + kBig2},
      {"colours_444.jpg", frame + 7, frame + 5, kBig2},
      {"animated.webp", 24, 27, std::string("\x4F\xC3\0", 3)},  // less one
  };
  for (const Field& field : fields) {
    SCOPED_TRACE(field.name);
    std::string file = ReadImageFile(field.name);
    file.replace(field.width_offset, field.bytes.size(), field.bytes);
    file.replace(field.height_offset, field.bytes.size(), field.bytes);
    EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"50000 x 50000 = 2500000000", "67108864"}));
  }
}

TEST(ImageHeader, ReadsFormatAndSize) {
  const std::vector<std::pair<std::string, ImageFormat>> files = {{"grey.jpg", ImageFormat::kJpeg},
                                                                  {"grey.png", ImageFormat::kPng},
                                                                  {"lossy.webp", ImageFormat::kWebp},
                                                                  {"lossless.webp", ImageFormat::kWebp},
                                                                  {"alpha.webp", ImageFormat::kWebp}};
  for (const auto& [name, format] : files) {
    SCOPED_TRACE(name);
    const auto header = ReadImageHeader(ReadImageFile(name), {});
    ASSERT_THAT(header, IsOk());
    EXPECT_EQ(header->format, format);
    EXPECT_EQ(header->size.width, 13);
    EXPECT_EQ(header->size.height, 9);
  }
}

TEST(ImageHeader, NamesTheFormatThatIsNotDecodedAndWhatToDo) {
  const std::vector<std::pair<std::string, std::string>> starts = {
      {"TIFF", std::string("II*\0\x08\0\0\0", 8)},
      {"TIFF", std::string("MM\0*\0\0\0\x08", 8)},
      {"TIFF", std::string("II+\0\x08\0\0\0", 8)},
      {"BMP", "BM\x36\x30"},
      {"GIF", "GIF89a"},
      {"HEIC", std::string("\0\0\0\x18"
                           "ftypheic\0\0\0\0mif1heic",
                           24)},
      {"AVIF", std::string("\0\0\0\x1C"
                           "ftypmif1\0\0\0\0mif1avifmiaf",
                           28)},
      {"JPEG XL", "\xFF\x0A\xFA\x1F"},
      {"JPEG XL", std::string("\0\0\0\x0CJXL \r\n\x87\n", 12)},
      {"SVG", "<svg xmlns='http://www.w3.org/2000/svg'/>"},
      {"SVG", "\xEF\xBB\xBF<?xml version='1.0'?>\n<!-- a drawing -->\n<svg/>"},
      {"PDF", "%PDF-1.7"},
      {"JPEG 2000", std::string("\0\0\0\x0CjP  \r\n\x87\n", 12)},
      {"ICO", std::string("\0\0\1\0\1\0", 6)},
      {"PPM", "P6\n2 2\n"},
      {"an HTML page", "<!DOCTYPE html><html><svg></svg></html>"},
      {"a Git LFS pointer (`git lfs pull` fetches the file)", "version https://git-lfs.github.com/spec/v1\n"},
  };
  for (const auto& [format, start] : starts) {
    EXPECT_THAT(ReadImageHeader(start, {}),
                Refuses(Words{"the image is " + format + ";", "decodes JPEG, PNG and WebP", "convert it to PNG"}));
  }
  for (const std::string unknown : {"<?xml version='1.0'?><html/>", "    ftypmp42", "P6 1 1 255"}) {
    EXPECT_THAT(ReadImageHeader(unknown, {}), Refuses(Words{"not a JPEG, PNG or WebP"}));
  }
}

// Where the header is broken off anywhere, its reader goes no further than the bytes.
TEST(ImageHeader, RefusesTruncatedStartsOfOtherFormats) {
  const std::string heic(
      "\0\0\0\x18"
      "ftypheic\0\0\0\0mif1heic",
      24);
  for (size_t length = 0; length < 12; ++length) {
    EXPECT_THAT(ReadImageHeader(heic.substr(0, length), {}), Refuses(Words{"image"})) << length;
  }
}

// The orientation may stand before the frame header or after it.
TEST(ImageHeader, AJpegsOrientationMayFollowItsFrameHeader) {
  const std::string file = ReadImageFile("orientation_6.jpg");
  const size_t notes = file.find("\xFF\xE1");
  const size_t length = 2 + 256 * static_cast<uint8_t>(file[notes + 2]) + static_cast<uint8_t>(file[notes + 3]);
  std::string later = file;
  later.erase(notes, length).insert(FrameHeaderOf(file) + 2 + 17 - length, file.substr(notes, length));
  const auto image = DecodeImage(file, ImageLimits()), same = DecodeImage(later, ImageLimits());
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(same->size(), image->size());
  EXPECT_EQ(cv::norm(*same, *image, cv::NORM_INF), 0);
}

TEST(ImageHeader, RefusesImagesWithoutPixels) {
  std::string file = ReadImageFile("colours.png");
  file.replace(16, 4, std::string(4, '\0'));
  EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"no pixels", "0 x 9"}));
}

TEST(ImageHeader, RefusesKindsOfJpegThatAreNotDecoded) {
  std::string file = ReadImageFile("grey.jpg");
  const size_t frame = FrameHeaderOf(file);
  file[frame + 4] = 12;
  EXPECT_THAT(ReadImageHeader(file, {}), Refuses(Words{"12 bits per sample"}));
  file[frame + 1] = '\xC3';
  EXPECT_THAT(ReadImageHeader(file, {}), Refuses(Words{"0xc3", "lossless"}));
}

}  // namespace longshort::models::image_header_test

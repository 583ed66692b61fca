#include "models/images/image_header.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/decode_image.h"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"

namespace longshort {
namespace {

using Words = std::vector<std::string>;

struct Field {
  std::string name;     // of the file
  size_t width_offset;  // where its width and height stand
  size_t height_offset;
  std::string bytes;  // 50,000 in the format's way
};

// 50,000 = 0xC350.
const std::string kBig2 = "\xC3\x50";
const std::string kLittle4 = std::string("\x50\xC3\0\0", 4);

size_t FrameHeaderOf(const std::string& jpeg) { return jpeg.find("\xFF\xC0"); }

// The offset of a tag's value in a little-endian TIFF.
size_t ValueOf(const std::string& tiff, char low, char high) {
  const auto directory = static_cast<uint8_t>(tiff[4]) + 256U * static_cast<uint8_t>(tiff[5]);
  for (size_t entry = directory + 2; entry + 12 <= tiff.size(); entry += 12) {
    if (tiff[entry] == low && tiff[entry + 1] == high) return entry + 8;
  }
  return std::string::npos;
}

// A header that says 50,000 x 50,000 costs nothing: it is refused before anything of that size is made.
TEST(ImageHeader, RefusesHugeImagesBeforeDecoding) {
  const std::string jpeg = ReadImageFile("colours_444.jpg");
  const std::string tiff = ReadImageFile("wide_colours.tif");
  const size_t frame = FrameHeaderOf(jpeg);
  const std::vector<Field> fields = {
      {"colours.png", 16, 20, std::string("\0\0", 2) + kBig2},
      {"colours_444.jpg", frame + 7, frame + 5, kBig2},
      {"colours.bmp", 18, 22, kLittle4},
      {"animated.webp", 24, 27, std::string("\x4F\xC3\0", 3)},  // less one
      {"wide_colours.tif", ValueOf(tiff, 0, 1), ValueOf(tiff, 1, 1), kLittle4},
  };
  for (const Field& field : fields) {
    SCOPED_TRACE(field.name);
    std::string file = ReadImageFile(field.name);
    file.replace(field.width_offset, field.bytes.size(), field.bytes);
    file.replace(field.height_offset, field.bytes.size(), field.bytes);
    EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"50000 x 50000 = 2500000000", "67108864"}));
  }
}

TEST(ImageHeader, ReadsFormatAndSize) {
  const std::vector<std::pair<std::string, ImageFormat>> files = {
      {"grey.jpg", ImageFormat::kJpeg},      {"grey.png", ImageFormat::kPng},    {"lossy.webp", ImageFormat::kWebp},
      {"lossless.webp", ImageFormat::kWebp}, {"alpha.webp", ImageFormat::kWebp}, {"grey.bmp", ImageFormat::kBmp},
      {"big_endian.tif", ImageFormat::kTiff}};
  for (const auto& [name, format] : files) {
    SCOPED_TRACE(name);
    const auto header = ReadImageHeader(ReadImageFile(name));
    ASSERT_THAT(header, IsOk());
    EXPECT_EQ(header->format, format);
    EXPECT_EQ(header->size.width, 13);
    EXPECT_EQ(header->size.height, 9);
  }
}

TEST(ImageHeader, RefusesImagesWithoutPixels) {
  std::string file = ReadImageFile("colours.png");
  file.replace(16, 4, std::string(4, '\0'));
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"no pixels", "0 x 9"}));
}

TEST(ImageHeader, RefusesKindsOfJpegThatAreNotDecoded) {
  std::string file = ReadImageFile("grey.jpg");
  const size_t frame = FrameHeaderOf(file);
  file[frame + 4] = 12;
  EXPECT_THAT(ReadImageHeader(file), Refuses(Words{"12 bits a sample"}));
  file[frame + 1] = '\xC3';
  EXPECT_THAT(ReadImageHeader(file), Refuses(Words{"0xc3", "lossless"}));
}

}  // namespace
}  // namespace longshort

#include "models/images/decode_image.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/image_header.h"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"

namespace longshort {
namespace {

using Words = std::vector<std::string>;

std::string CommonPrefixOf(const std::string& name) { return name.substr(0, name.find('.')); }

int LargestDifference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int largest = a.size() == b.size() ? 0 : 256;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(DecodeImage, MakesThePixelsThatPillowMakes) {
  const std::vector<std::string> names = ImageFileNames();
  ASSERT_GE(names.size(), 50U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const ExpectedImage expected = ReadExpectedImage(name);
    const auto image = DecodeImage(ReadImageFile(name), ImageLimits());
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->size.height, expected.height);
    EXPECT_EQ(image->size.width, expected.width);
    // OpenCV divides by 256 where four inks become three colours, Pillow by 255.
    const int allowed = CommonPrefixOf(name) == "cmyk" ? 2 : 0;
    EXPECT_LE(LargestDifference(image->values, expected.values), allowed);
  }
}

TEST(DecodeImage, AllOrientationsStandUprightAlike) {
  const ExpectedImage upright = ReadExpectedImage("orientation_1.jpg");
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const auto image = DecodeImage(ReadImageFile("orientation_" + std::to_string(orientation) + ".jpg"), {});
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->size.width == upright.width, orientation <= 4) << "turned by 90 degrees from 5 on";
  }
}

// A file that ends anywhere: the end of a JPEG or PNG must be seen; of no format may it end the process.
TEST(DecodeImage, RefusesTruncatedFiles) {
  for (const std::string& name : ImageFileNames()) {
    SCOPED_TRACE(name);
    const std::string whole = ReadImageFile(name);
    const bool has_end = name.ends_with(".jpg") || name.ends_with(".png");
    for (size_t length = 0; length < whole.size(); length += 7) {
      const auto image = DecodeImage(whole.substr(0, length), {});
      if (image.ok() && !has_end) continue;
      EXPECT_THAT(image, Refuses(Words{"image"})) << length << " of " << whole.size() << " bytes";
    }
  }
}

TEST(DecodeImage, RefusesWhatIsNoImage) {
  EXPECT_THAT(DecodeImage("", {}), Refuses(Words{"no bytes"}));
  EXPECT_THAT(DecodeImage("GIF89a", {}), Refuses(Words{"no JPEG, PNG, WebP, BMP or TIFF"}));
  EXPECT_THAT(DecodeImage(std::string(100, '\0'), {}), Refuses(Words{"no JPEG, PNG, WebP, BMP or TIFF"}));
}

TEST(DecodeImage, NamesTheLimitThatIsBroken) {
  const std::string file = ReadImageFile("colours.png");  // 13 x 9, 85 bytes
  EXPECT_THAT(DecodeImage(file, {.max_bytes = 84}), Refuses(Words{"85 bytes", "84"}));
  EXPECT_THAT(DecodeImage(file, {.max_pixels = 116}), Refuses(Words{"13 x 9 = 117", "116"}));
  EXPECT_THAT(DecodeImage(file, {.max_side = 12}), Refuses(Words{"13 x 9", "12 pixels a side"}));
  EXPECT_THAT(DecodeImage(file, {.max_bytes = 85, .max_pixels = 117, .max_side = 13}), IsOk());
}

TEST(DecodeImage, RefusesAJpegWithMoreScansThanEncodersWrite) {
  std::string file = ReadImageFile("progressive.jpg");
  const size_t scan = file.rfind("\xFF\xDA");
  const std::string last_scan = file.substr(scan, file.size() - scan - 2);
  std::string scans;
  for (int i = 0; i < 200; ++i) scans += last_scan;
  file.insert(scan, scans);
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"more than 100 scans"}));
}

TEST(DecodeImage, RefusesATileThatIsMuchLargerThanItsImage) {
  std::string file = ReadImageFile("tiles.tif");  // 13 x 9 pixels, a tile of 16 x 16
  const size_t width = file.find(std::string("\x42\x01\x04\x00", 4)) + 8, height = width + 12;
  file[width] = file[height] = 0;
  file[width + 1] = file[height + 1] = 4;
  EXPECT_THAT(ReadImageHeader(file), IsOk());
  file[width] = 16;
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"tag 323 is 1024", "TileLength", "multiple of 16"}));
}

TEST(DecodeImage, NamesTheTagOfATiffThatIsNotDecodedAndWhatIsTaken) {
  std::string file = ReadImageFile("grey.tif");
  file[file.find(std::string("\x02\x01\x03\x00", 4)) + 8] = 4;
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"tag 258 is 4", "BitsPerSample", "1, 8 or, of grey or RGB, 16"}));
}

TEST(DecodeImage, RefusesAFrameOfAnAnimationThatIsNotWhatItSays) {
  std::string file = ReadImageFile("animated.webp");
  const size_t frame = file.find("ANMF") + 8;
  file[frame + 6] = 5;  // width less one: 6 instead of 13
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"frame", "6 x 9", "13 x 9"}));
  file[frame] = 9;  // half of its left edge: 18, while the canvas is 13 wide
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"reaches over the canvas"}));
}

// Canvas and frame are 10 x 10; the image inside the frame is 16383 x 16383, which would take 800 MB to decode.
TEST(DecodeImage, RefusesAFrameThatHoldsALargerImageBeforeDecodingIt) {
  const std::string file = ReadImageFile("broken/animated_with_large_frame.webp");
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"frame", "10 x 10", "16383 x 16383"}));
}

TEST(DecodeImage, RefusesAFrameThatBeginsWithNoImage) {
  std::string file = ReadImageFile("animated.webp");
  const size_t image = file.find("ANMF") + 8 + 16;
  file.replace(image, 4, "VP8X");
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"frame", "ALPH, VP8 or VP8L"}));
}

}  // namespace
}  // namespace longshort

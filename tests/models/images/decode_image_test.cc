#include "models/images/decode_image.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/byte_order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/image_header.h"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"

namespace longshort {
namespace {

using Words = std::vector<std::string>;

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
    // libtiff rounds down where four inks become three colours, Pillow to the nearest.
    EXPECT_LE(LargestDifference(image->values, expected.values), name == "cmyk.tif" ? 1 : 0);
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

// The libraries would print to standard error, between the lines of a log. Cut files, and such with other bytes in
// their middle.
TEST(DecodeImage, PrintsNothingOfBrokenFiles) {
  testing::internal::CaptureStderr();
  int refused = 0;
  for (const std::string& name : ImageFileNames()) {
    const std::string whole = ReadImageFile(name);
    for (size_t place = whole.size() / 4; place < whole.size(); place += 1 + whole.size() / 16) {
      std::string changed = whole;
      changed[place] = static_cast<char>(~changed[place]);
      refused += DecodeImage(changed, {}).ok() ? 0 : 1;
      refused += DecodeImage(whole.substr(0, place), {}).ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// damaged_tiffs.txt says what Pillow makes of each. Damage that it does not see is told here: data that end before
// their last row (CCITT group 3), and a wrong checksum (LZMA).
TEST(DecodeImage, RefusesTheDamagedTiffsThatPillowRefuses) {
  std::ifstream list(std::string(LONGSHORT_TEST_IMAGES) + "/damaged_tiffs.txt");
  std::string name, damage, verdict;
  size_t offset = 0;
  int refused = 0;
  while (list >> name >> offset >> damage >> verdict) {
    SCOPED_TRACE(absl::StrCat(name, " ", offset, " ", damage));
    std::string file = ReadImageFile(name);
    file.replace(offset, damage.size() / 2, absl::HexStringToBytes(damage));
    const auto image = DecodeImage(file, {});
    if (verdict == "refused") {
      EXPECT_THAT(image, Refuses(Words{"TIFF image cannot be decoded"}));
      ++refused;
    } else if (name != "group3.tif" && name != "lzma.tif") {
      EXPECT_THAT(image, IsOk());
    }
  }
  EXPECT_GE(refused, 40);
}

TEST(DecodeImage, RefusesAPaletteThatIsCutShort) {
  std::string file = ReadImageFile("palette.tif");
  const size_t count = file.find(std::string("\x40\x01\x03\x00", 4)) + 4;
  ASSERT_EQ(file.substr(count, 4), std::string("\0\3\0\0", 4));
  file[count + 1] = 1;
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"palette has 256 values", "must have 768"}));
}

double SecondsOfThisThread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string PngChunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto check = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  std::string chunk(8, '\0');
  WriteNumber(content.size(), ByteOrder::kBigEndian, 4, chunk.data());
  WriteNumber(check, ByteOrder::kBigEndian, 4, chunk.data() + 4);
  return chunk.substr(0, 4) + body + chunk.substr(4);
}

// broken/inflates_on.png ends in a block of 1037 bytes, a mebibyte of zeros. Here 4096 more of them follow its 8 x 8
// pixels: inflating them takes 10 s.
TEST(DecodeImage, InflatesNoMoreOfAPngThanItsPixels) {
  std::string file = ReadImageFile("broken/inflates_on.png");
  const size_t data_end = file.find("IEND") - 8;
  const std::string mebibyte = file.substr(data_end - 1037, 1037);
  std::string more;
  for (int i = 0; i < 4096; ++i) more += mebibyte;
  file.insert(data_end + 4, PngChunk("IDAT", more));
  const double before = SecondsOfThisThread();
  const auto image = DecodeImage(file, {});
  EXPECT_LT(SecondsOfThisThread() - before, 0.5);
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(image->values.back(), 63);
}

TEST(DecodeImage, RefusesAPngWhoseDataEndBeforeItsLastRow) {
  for (const std::string name : {"colours.png", "interlaced.png", "grey.png"}) {
    std::string file = ReadImageFile(name);
    std::string header = file.substr(16, 13);
    header[7] = 10;  // rows; there are 9
    file.replace(8, 25, PngChunk("IHDR", header));
    EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"end before its last row"})) << name;
  }
}

TEST(DecodeImage, RefusesStripsThatShareBytesWithoutEnd) {
  const std::string file = ReadImageFile("broken/strips_share_bytes.tif");
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"strips or tiles have more than", "the file 57892"}));
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

TEST(DecodeImage, RefusesARunThatGoesBeyondItsRow) {
  for (const std::string name : {"run_lengths_8.bmp", "run_lengths_4.bmp"}) {
    std::string file = ReadImageFile(name);
    const size_t first_count = static_cast<uint8_t>(file[10]) + 256 * static_cast<uint8_t>(file[11]);
    file[first_count] = 14;  // pixels; the row has 13
    EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"run goes beyond its row"})) << name;
  }
}

TEST(DecodeImage, NamesWhatOfABmpIsNotDecoded) {
  std::string file = ReadImageFile("colours.bmp");
  file[28] = 2;
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"BMP with bits a pixel 2"}));
  file[30] = 1;
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"run lengths in pixels of bits 2"}));
}

TEST(DecodeImage, RefusesAJpegWithMoreScansThanEncodersWrite) {
  std::string file = ReadImageFile("progressive.jpg");
  const size_t scan = file.rfind("\xFF\xDA");
  const std::string last_scan = file.substr(scan, file.size() - scan - 2);
  std::string scans;
  for (int i = 0; i < 200; ++i) scans += last_scan;
  file.insert(scan, scans);
  EXPECT_THAT(DecodeImage(file, {}), Refuses(Words{"more than 100 scans"}));
  const size_t frame = file.find("\xFF\xC2");
  file.replace(frame + 5, 4, "\x20\x01\x20\x01");  // 8193 x 8193 pixels
  EXPECT_THAT(DecodeImage(file, {.max_pixels = 1 << 27}), Refuses(Words{"more than 20 scans"}));
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

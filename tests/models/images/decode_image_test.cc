#include "models/images/decode_image.h"

#include <ctime>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"
#include "tests/models/images/png_writer.h"

namespace longshort::models::decode_image_test {

using Words = std::vector<std::string>;

std::vector<uint8_t> ValuesOf(const cv::Mat& image) { return image.reshape(1, 1); }

TEST(DecodeImage, MakesThePixelsThatPillowMakes) {
  const std::vector<std::string> names = ImageFileNames();
  ASSERT_GE(names.size(), 35U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const ExpectedImage expected = ReadExpectedImage(name);
    const auto image = DecodeImage(ReadImageFile(name), ImageLimits());
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->rows, expected.height);
    EXPECT_EQ(image->cols, expected.width);
    EXPECT_EQ(image->type(), CV_8UC3);
    EXPECT_EQ(ValuesOf(*image), expected.values);
  }
}

TEST(DecodeImage, AllOrientationsStandUprightAlike) {
  const ExpectedImage upright = ReadExpectedImage("orientation_1.jpg");
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const auto image = DecodeImage(ReadImageFile("orientation_" + std::to_string(orientation) + ".jpg"), ImageLimits());
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->cols == upright.width, orientation <= 4) << "turned by 90 degrees from 5 on";
  }
}

// A file that ends anywhere: the end of a JPEG or PNG must be seen; of no format may it end the process.
TEST(DecodeImage, RefusesTruncatedFiles) {
  for (const std::string& name : ImageFileNames()) {
    SCOPED_TRACE(name);
    const std::string whole = ReadImageFile(name);
    const bool has_end = name.ends_with(".jpg") || name.ends_with(".png");
    for (size_t length = 0; length < whole.size(); length += 7) {
      const auto image = DecodeImage(whole.substr(0, length), ImageLimits());
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
      refused += DecodeImage(changed, ImageLimits()).ok() ? 0 : 1;
      refused += DecodeImage(whole.substr(0, place), ImageLimits()).ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

double SecondsOfThisThread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// broken/inflates_on.png ends in a block of 1037 bytes, a mebibyte of zeros. Here 4096 more of them follow its 8 x 8
// pixels: inflating them takes 10 s.
TEST(DecodeImage, InflatesOnlyThePixelsOfAPng) {
  std::string file = ReadImageFile("broken/inflates_on.png");
  const size_t data_end = file.find("IEND") - 8;
  const std::string mebibyte = file.substr(data_end - 1037, 1037);
  std::string more;
  for (int i = 0; i < 4096; ++i) more += mebibyte;
  file.insert(data_end + 4, PngChunk("IDAT", more));
  const double before = SecondsOfThisThread();
  const auto image = DecodeImage(file, ImageLimits());
  EXPECT_LT(SecondsOfThisThread() - before, 0.5);
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(ValuesOf(*image).back(), 63);
}

TEST(DecodeImage, RefusesAPngWhoseDataEndBeforeItsLastRow) {
  for (const std::string name : {"colours.png", "interlaced.png", "grey.png"}) {
    std::string file = ReadImageFile(name);
    std::string header = file.substr(16, 13);
    header[7] = 10;  // rows; there are 9
    file.replace(8, 25, PngChunk("IHDR", header));
    EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"end before its last row"})) << name;
  }
}

// Every 16-bit sample becomes the nearest of 256 levels: sample / 257, rounded.
TEST(DecodeImage, SixteenBitsBecomeTheNearestLevel) {
  std::string rows;
  for (int row = 0; row < 256; ++row) {
    rows += '\0';  // no filter
    for (int column = 0; column < 256; ++column) rows += {static_cast<char>(row), static_cast<char>(column)};
  }
  const auto image = DecodeImage(PngOf(256, 256, 16, PngColours::kGrey, rows), ImageLimits());
  ASSERT_THAT(image, IsOk());
  const std::vector<uint8_t> levels = ValuesOf(*image);
  for (int sample = 0; sample < 65536; ++sample) ASSERT_EQ(levels[3 * sample], (sample + 128) / 257) << sample;
}

// Two pixels of 16 bits.
std::string WidePng(PngColours colours, std::vector<int> samples) {
  std::string row(1, '\0');
  for (const int sample : samples) row += {static_cast<char>(sample >> 8), static_cast<char>(sample & 255)};
  return PngOf(2, 1, 16, colours, row);
}

// Microscopes and medical devices store 12 bits in 16.
TEST(DecodeImage, RefusesSixteenBitsOfWhichFewAreUsed) {
  for (const int max : {1, 255, 1023, 4095}) {
    EXPECT_THAT(
        DecodeImage(WidePng(PngColours::kGrey, {0, max}), ImageLimits()),
        Refuses(Words{"16 bits per sample", "largest sample is " + std::to_string(max) + " of 65535", "Scale"}));
  }
  EXPECT_THAT(DecodeImage(WidePng(PngColours::kGrey, {0, 4096}), ImageLimits()), IsOk());
  EXPECT_THAT(DecodeImage(WidePng(PngColours::kGrey, {0, 0}), ImageLimits()), IsOk()) << "black";
}

TEST(DecodeImage, NamesTheLimitThatIsBroken) {
  const std::string file = ReadImageFile("colours.png");  // 13 x 9, 85 bytes
  EXPECT_THAT(DecodeImage(file, ImageLimits{.max_bytes = 84}), Refuses(Words{"85 bytes", "84"}));
  EXPECT_THAT(DecodeImage(file, ImageLimits{.max_pixels = 116}), Refuses(Words{"13 x 9 = 117", "116"}));
  EXPECT_THAT(DecodeImage(file, ImageLimits{.max_side = 12}), Refuses(Words{"13 x 9", "12 pixels per side"}));
  EXPECT_THAT(DecodeImage(file, ImageLimits{.max_bytes = 85, .max_pixels = 117, .max_side = 13}), IsOk());
}

TEST(DecodeImage, RefusesAJpegWithMoreScansThanEncodersWrite) {
  std::string file = ReadImageFile("progressive.jpg");
  const size_t scan = file.rfind("\xFF\xDA");
  const std::string last_scan = file.substr(scan, file.size() - scan - 2);
  std::string scans;
  for (int i = 0; i < 200; ++i) scans += last_scan;
  file.insert(scan, scans);
  EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"more than 100 scans"}));
  const size_t frame = file.find("\xFF\xC2");
  file.replace(frame + 5, 4, "\x20\x01\x20\x01");  // 8193 x 8193 pixels
  EXPECT_THAT(DecodeImage(file, ImageLimits{.max_pixels = 1 << 27}), Refuses(Words{"more than 20 scans"}));
}

TEST(DecodeImage, RefusesAFrameOfAnAnimationThatIsNotWhatItSays) {
  std::string file = ReadImageFile("animated.webp");
  const size_t frame = file.find("ANMF") + 8;
  file[frame + 6] = 5;  // width less one: 6 instead of 13
  EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"frame", "6 x 9", "13 x 9"}));
  file[frame] = 9;  // half of its left edge: 18, while the canvas is 13 wide
  EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"exceeds the canvas"}));
}

// Canvas and frame are 10 x 10; the image inside the frame is 16383 x 16383, which would take 800 MB to decode.
TEST(DecodeImage, RefusesAFrameThatHoldsALargerImageBeforeDecodingIt) {
  const std::string file = ReadImageFile("broken/animated_with_large_frame.webp");
  EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"frame", "10 x 10", "16383 x 16383"}));
}

TEST(DecodeImage, RefusesAFrameThatBeginsWithNoImage) {
  std::string file = ReadImageFile("animated.webp");
  const size_t image = file.find("ANMF") + 8 + 16;
  file.replace(image, 4, "VP8X");
  EXPECT_THAT(DecodeImage(file, ImageLimits()), Refuses(Words{"frame", "ALPH, VP8 or VP8L"}));
}

}  // namespace longshort::models::decode_image_test

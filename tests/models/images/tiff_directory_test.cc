#include "models/images/tiff_directory.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/exif.h"
#include "models/images/tiff.h"
#include "tests/base/status_matchers.h"

namespace longshort {
namespace {

using Words = std::vector<std::string>;

struct Entry {
  uint64_t tag, type, count, value;
};

constexpr uint64_t kByte = 1, kShort = 3, kLong = 4, kRational = 5, kLong8 = 16;

std::string Number(uint64_t value, ByteOrder order, int length) {
  std::string bytes(static_cast<size_t>(length), '\0');
  WriteNumber(value, order, length, bytes.data());
  return bytes;
}

// A TIFF of only a directory; `big`: a BigTIFF. A value shorter than its field stands at the field's beginning.
std::string Tiff(const std::vector<Entry>& entries, ByteOrder order, bool big) {
  const int offset_length = big ? 8 : 4;
  std::string bytes = order == ByteOrder::kLittleEndian ? "II" : "MM";
  bytes += Number(big ? 43 : 42, order, 2);
  if (big) bytes += Number(8, order, 2) + Number(0, order, 2);
  bytes += Number(big ? 16 : 8, order, offset_length);
  bytes += Number(entries.size(), order, big ? 8 : 2);
  for (const Entry& entry : entries) {
    std::string value = Number(entry.value, order, entry.type == kShort ? 2 : 4);
    value.resize(static_cast<size_t>(offset_length));
    bytes += Number(entry.tag, order, 2) + Number(entry.type, order, 2) + Number(entry.count, order, offset_length);
    bytes += value;
  }
  return bytes;
}

TEST(TiffDirectory, ReadsNumbersInBothOrdersAndBothVersions) {
  for (const ByteOrder order : {ByteOrder::kLittleEndian, ByteOrder::kBigEndian}) {
    for (const bool big : {false, true}) {
      const std::string bytes = Tiff({{256, kLong, 1, 70000}, {274, kShort, 1, 6}}, order, big);
      const auto directory = TiffDirectory::Read(bytes);
      ASSERT_THAT(directory, IsOk());
      EXPECT_EQ(*directory->NumberOr(TiffTag::kOrientation, 1), 6U);
      EXPECT_EQ(*directory->NumberOr(TiffTag::kCompression, 1), 1U);
      EXPECT_EQ(*directory->Number(TiffTag::kImageWidth), 70000U);
      EXPECT_EQ(ExifOrientation(bytes), 6);
    }
  }
}

TEST(TiffDirectory, FindsValuesThatStandElsewhere) {
  // Three SHORTs need six bytes: they stand behind the directory, at 8 + 2 + 12.
  std::string bytes = Tiff({{258, kLong, 1, 22}}, ByteOrder::kLittleEndian, false);
  bytes.replace(12, 2, Number(kShort, ByteOrder::kLittleEndian, 2));
  bytes.replace(14, 4, Number(3, ByteOrder::kLittleEndian, 4));
  bytes += Number(8, ByteOrder::kLittleEndian, 2) + Number(9, ByteOrder::kLittleEndian, 2);
  const auto directory = TiffDirectory::Read(bytes);
  ASSERT_THAT(directory, IsOk());
  EXPECT_EQ(directory->Count(TiffTag::kBitsPerSample), 3U);
  EXPECT_EQ(*directory->Number(TiffTag::kBitsPerSample, 1), 9U);
  EXPECT_THAT(directory->Number(TiffTag::kBitsPerSample, 2), Refuses(Words{"truncated"}));
  EXPECT_THAT(directory->Number(TiffTag::kBitsPerSample, 3), Refuses(Words{"tag 258", "index 3"}));
}

TEST(TiffDirectory, RefusesBrokenDirectories) {
  const ByteOrder order = ByteOrder::kLittleEndian;
  EXPECT_THAT(TiffDirectory::Read("II"), Refuses(Words{"truncated"}));
  EXPECT_THAT(TiffDirectory::Read("XX*"), Refuses(Words{"byte order"}));
  EXPECT_THAT(TiffDirectory::Read(Tiff({{256, kLong, 1, 1}, {256, kLong, 1, 2}}, order, false)),
              Refuses(Words{"tag 256", "twice"}));
  const auto rational = TiffDirectory::Read(Tiff({{256, kRational, 1, 1}}, order, false));
  ASSERT_THAT(rational, IsOk());
  EXPECT_THAT(rational->Number(TiffTag::kImageWidth), Refuses(Words{"no unsigned number"}));
}

// A number of 8 bytes in a classic TIFF stands elsewhere: where another tag's value is, say. To make one plain would
// change the other, here the length from 15 to 15 * 65537 rows.
TEST(MakePlainTiff, RefusesTagsThatLieOverEachOther) {
  const auto tiff_with_rows_at = [](uint64_t place) {
    return Tiff({{257, kLong, 1, 15},
                 {65000, kByte, 1, 0},
                 {256, kLong, 1, 1000},
                 {258, kShort, 1, 8},
                 {262, kShort, 1, 1},
                 {278, kLong8, 1, place}},
                ByteOrder::kLittleEndian, false) +
           std::string(8, '\x7f');
  };
  constexpr uint64_t kValueOfLength = 8 + 2 + 8, kEnd = 8 + 2 + 6 * 12;
  const std::string apart = tiff_with_rows_at(kEnd), over_each_other = tiff_with_rows_at(kValueOfLength + 2);
  ASSERT_THAT(ReadTiffHeader(apart), IsOk());
  ASSERT_THAT(ReadTiffHeader(over_each_other), IsOk());
  const auto plain = MakePlainTiff(apart);
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(ReadTiffHeader(*plain)->size, (ImageSize{.height = 15, .width = 1000}));
  EXPECT_THAT(MakePlainTiff(over_each_other), Refuses(Words{"over each other"}));
}

TEST(TiffDirectory, BrokenExifIsNoOrientation) {
  EXPECT_EQ(ExifOrientation(""), 1);
  EXPECT_EQ(ExifOrientation("II*"), 1);
  EXPECT_EQ(ExifOrientation(Tiff({{274, kShort, 1, 9}}, ByteOrder::kBigEndian, false)), 1);
}

}  // namespace
}  // namespace longshort

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "server/handlers/completion_translator.h"

namespace longshort::server::utf8_stream_test {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

std::string Replacements(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kReplacement;
  return text;
}

std::string WholeText(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.Append(bytes);
  return text + stream.Flush();
}

// Table 3-7 of the Unicode standard: the well-formed byte sequences, as ranges of their bytes.
struct ByteRange {
  uint8_t lowest;
  uint8_t highest;
};
const std::vector<std::vector<ByteRange>>& WellFormed() {
  static const std::vector<std::vector<ByteRange>> kTable = {
      {{0x00, 0x7F}},
      {{0xC2, 0xDF}, {0x80, 0xBF}},
      {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
      {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
      {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
  };
  return kTable;
}

// How many bytes at the beginning of `bytes` follow a row of the table.
size_t MatchedBytes(std::string_view bytes, const std::vector<ByteRange>& row) {
  size_t matched = 0;
  while (matched < row.size() && matched < bytes.size()) {
    const auto byte = static_cast<uint8_t>(bytes[matched]);
    if (byte < row[matched].lowest || byte > row[matched].highest) break;
    ++matched;
  }
  return matched;
}

// The standard's rule, on the whole text at once: a well-formed character stays; otherwise the longest beginning of
// one, or else one byte, is replaced.
std::string Reference(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    size_t longest = 0;
    bool whole = false;
    for (const std::vector<ByteRange>& row : WellFormed()) {
      const size_t matched = MatchedBytes(bytes, row);
      longest = std::max(longest, matched);
      whole = whole || matched == row.size();
    }
    text += whole ? std::string(bytes.substr(0, longest)) : std::string(kReplacement);
    bytes.remove_prefix(std::max<size_t>(longest, 1));
  }
  return text;
}

TEST(Utf8Stream, LeavesWellFormedTextAsItIs) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F";  // a, e acute, euro sign, a face
  EXPECT_EQ(WholeText(text), text);
}

TEST(Utf8Stream, HoldsBackACharacterUntilItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("x\xF0"), "x");
  EXPECT_EQ(stream.Append("\x9F\x98"), "");
  EXPECT_EQ(stream.Append("\x80y"), "\xF0\x9F\x98\x80y");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(Utf8Stream, ReplacesACharacterLeftUnfinishedByOneSign) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.Flush(), kReplacement);
  EXPECT_EQ(stream.Flush(), "");
}

// Table 3-8 of the Unicode standard.
TEST(Utf8Stream, ReplacesEachMaximalSubpart) {
  EXPECT_EQ(WholeText("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            std::string("a") + Replacements(3) + "b" + Replacements(1) + "c" + Replacements(2) + "d");
}

TEST(Utf8Stream, ReplacesOverlongFormsSurrogatesAndNumbersBeyondUnicodeByteByByte) {
  EXPECT_EQ(WholeText("\xC0\xAF"), Replacements(2));
  EXPECT_EQ(WholeText("\xE0\x80\xBF"), Replacements(3));
  EXPECT_EQ(WholeText("\xED\xA0\x80"), Replacements(3));
  EXPECT_EQ(WholeText("\xF0\x8F\xBF\xBF"), Replacements(4));
  EXPECT_EQ(WholeText("\xF4\x90\x80\x80"), Replacements(4));
  EXPECT_EQ(WholeText("\xFF\xFE"), Replacements(2));
}

TEST(Utf8Stream, BeginsAgainWithTheByteThatBrokeACharacter) {
  EXPECT_EQ(WholeText("\xE2\x82\xC3\xA9"), Replacements(1) + "\xC3\xA9");
}

TEST(Utf8Stream, GivesTheSameValidTextHoweverTheBytesAreCut) {
  std::mt19937 random(4);
  const std::string interesting = "a\x80\xBF\xC2\xE0\xA0\xED\x9F\xE1\xF0\x90\xF4\x8F\xF1\xC0\xFF";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 30, ' ');
    for (char& byte : bytes) byte = interesting[random() % interesting.size()];
    const std::string expected = Reference(bytes);
    Utf8Stream stream;
    std::string text;
    for (size_t position = 0; position < bytes.size();) {
      const size_t length = random() % 4 + 1;
      const std::string piece = stream.Append(std::string_view(bytes).substr(position, length));
      ASSERT_EQ(Reference(piece), piece) << "a piece is not valid by itself";
      text += piece;
      position += length;
    }
    text += stream.Flush();
    ASSERT_EQ(text, expected);
  }
}

}  // namespace longshort::server::utf8_stream_test

#include "base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace longshort::utf8_test {

// The UTF-8 form by the definition, for code points that have one.
std::string Encode(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  if (c < 0x10000) {
    return {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
            static_cast<char>(0x80 | (c & 63))};
  }
  return {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
          static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
}

TEST(Utf8, ReadsAndWritesEveryCharacter) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    const std::string form = Encode(c);
    const auto character = FirstUtf8Character(form + "x");
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(character.has_value(), !surrogate) << static_cast<uint32_t>(c);
    if (surrogate) continue;
    ASSERT_EQ(character->code_point, c);
    ASSERT_EQ(Utf8Of(c), form);
    ASSERT_EQ(character->bytes, static_cast<int64_t>(form.size()));
  }
}

TEST(Utf8, RefusesWhatIsNoCharacter) {
  for (const std::string malformed : {"", "\x80", "\xBF", "\xFF", "\xFE", "\xF8\x88\x80\x80\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_FALSE(FirstUtf8Character(malformed).has_value());
  }
}

TEST(Utf8, RefusesOverlongForms) {
  for (const std::string overlong : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF"}) {
    EXPECT_FALSE(FirstUtf8Character(overlong).has_value());
  }
}

TEST(Utf8, RefusesCutAndBrokenSequences) {
  for (const char32_t c : {U'é', U'€', U'😀'}) {
    const std::string form = Encode(c);
    for (size_t length = 1; length < form.size(); ++length) {
      EXPECT_FALSE(FirstUtf8Character(form.substr(0, length)).has_value());
      EXPECT_FALSE(FirstUtf8Character(form.substr(0, length) + "aaa").has_value());
    }
  }
}

TEST(Utf8, AWholeTextIsWellFormedIfEveryCharacterIs) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8(Encode(U'é') + Encode(U'😀')));
  EXPECT_FALSE(IsUtf8("a\xE9"));
  EXPECT_FALSE(IsUtf8(Encode(U'€').substr(0, 2)));
}

TEST(Utf8Decoder, AfterARejectedByteTheNextBeginsACharacter) {
  Utf8Decoder decoder;
  EXPECT_EQ(decoder.Take(0xE2), Utf8Decoder::Result::kMore);
  EXPECT_EQ(decoder.Take('a'), Utf8Decoder::Result::kRejected);
  EXPECT_EQ(decoder.Take('a'), Utf8Decoder::Result::kWhole);
  EXPECT_EQ(decoder.code_point(), U'a');
  EXPECT_EQ(decoder.Take(0x80), Utf8Decoder::Result::kRejected);
}

TEST(Utf8Decoder, ForgetsWhatIsBegun) {
  Utf8Decoder decoder;
  EXPECT_EQ(decoder.Take(0xC3), Utf8Decoder::Result::kMore);
  decoder.Reset();
  EXPECT_EQ(decoder.Take('a'), Utf8Decoder::Result::kWhole);
}

}  // namespace longshort::utf8_test

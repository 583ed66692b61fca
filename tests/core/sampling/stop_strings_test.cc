#include "core/sampling/stop_strings.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::stop_strings_test {

std::vector<std::string> Released(StopStrings& stop_strings, const std::vector<std::string>& pieces) {
  std::vector<std::string> released;
  for (const std::string& piece : pieces) released.push_back(stop_strings.Append(piece));
  return released;
}

TEST(StopStrings, WithoutAnyReleaseEverythingAtOnce) {
  StopStrings stop_strings({});
  EXPECT_THAT(Released(stop_strings, {"a", "bc"}), testing::ElementsAre("a", "bc"));
  EXPECT_EQ(stop_strings.met(), nullptr);
}

TEST(StopStrings, HoldWhatMayBeginOneUntilItCannot) {
  StopStrings stop_strings({"</s>"});
  EXPECT_THAT(Released(stop_strings, {"a<", "/b", "</", "s"}), testing::ElementsAre("a", "</b", "", ""));
  EXPECT_EQ(stop_strings.Append(">c"), "");
  EXPECT_EQ(*stop_strings.met(), "</s>");
}

TEST(StopStrings, ReleaseWhatStandsBeforeAMatchInOnePiece) {
  StopStrings stop_strings({"\n\n"});
  EXPECT_EQ(stop_strings.Append("one\ntwo\n\nthree"), "one\ntwo");
  EXPECT_EQ(*stop_strings.met(), "\n\n");
}

TEST(StopStrings, ReleaseTheHeldBytesAtTheEnd) {
  StopStrings stop_strings({"abc"});
  EXPECT_EQ(stop_strings.Append("xab"), "x");
  EXPECT_EQ(stop_strings.Flush(), "ab");
  EXPECT_EQ(stop_strings.Flush(), "");
}

// "aab" in "aaab": after "aaa" the last two may still begin it.
TEST(StopStrings, FallBackToAShorterBeginning) {
  StopStrings stop_strings({"aab"});
  EXPECT_THAT(Released(stop_strings, {"a", "a", "a"}), testing::ElementsAre("", "", "a"));
  EXPECT_EQ(stop_strings.Append("b"), "");
  EXPECT_EQ(*stop_strings.met(), "aab");
}

TEST(StopStrings, OfTwoThatEndTogetherTheLongestCounts) {
  StopStrings stop_strings({"b", "ab"});
  EXPECT_EQ(stop_strings.Append("xab"), "x");
  EXPECT_EQ(*stop_strings.met(), "ab");
}

TEST(StopStrings, TheOneThatEndsFirstCountsThoughAnotherBeganEarlier) {
  StopStrings stop_strings({"abcd", "bc"});
  EXPECT_EQ(stop_strings.Append("abcd"), "a");
  EXPECT_EQ(*stop_strings.met(), "bc");
}

TEST(StopStrings, AnEmptyPieceReleasesNothing) {
  StopStrings stop_strings({"ab"});
  EXPECT_THAT(Released(stop_strings, {"a", "", "b"}), testing::ElementsAre("", "", ""));
  EXPECT_NE(stop_strings.met(), nullptr);
}

TEST(StopStrings, MayContainAnyByte) {
  StopStrings stop_strings({std::string("\0\xFF", 2)});
  EXPECT_EQ(stop_strings.Append(std::string("a\0", 2)), "a");
  EXPECT_EQ(stop_strings.Append("\xFF"), "");
  EXPECT_NE(stop_strings.met(), nullptr);
}

// What the header says, found by trying every end: the first place where a stop string ends, then the longest there.
struct Expected {
  size_t begin = std::string::npos;
  std::string met;
};
Expected FirstMatch(const std::string& text, const std::vector<std::string>& stops) {
  Expected expected;
  for (size_t end = 1; end <= text.size() && expected.met.empty(); ++end) {
    for (const std::string& stop : stops) {
      const bool ends_here = end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (ends_here && stop.size() > expected.met.size()) expected = {.begin = end - stop.size(), .met = stop};
    }
  }
  return expected;
}

// The longest end of `text` that begins a stop string.
size_t MustBeHeld(const std::string& text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops) {
    for (size_t length = 1; length < stop.size() && length <= text.size(); ++length) {
      if (text.compare(text.size() - length, length, stop, 0, length) == 0) longest = std::max(longest, length);
    }
  }
  return longest;
}

std::string RandomText(std::mt19937& random, size_t length) {
  std::string text(length, ' ');
  for (char& byte : text) byte = "ab"[random() % 2];
  return text;
}

TEST(StopStrings, ReleaseEveryByteAsSoonAsTheyCanAndNoSoonerHoweverTheTextIsCut) {
  std::mt19937 random(3);
  int matches = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = RandomText(random, random() % 8 + 1);
    const std::string text = RandomText(random, random() % 60);
    const Expected expected = FirstMatch(text, stops);

    StopStrings stop_strings(stops);
    std::string released;
    size_t position = 0;
    while (position < text.size() && stop_strings.met() == nullptr) {
      const size_t length = random() % 5;
      released += stop_strings.Append(text.substr(position, length));
      position = std::min(position + length, text.size());
      if (stop_strings.met() == nullptr) {
        ASSERT_EQ(released.size(), position - MustBeHeld(text.substr(0, position), stops));
      }
    }
    released += stop_strings.Flush();
    ASSERT_EQ(released, text.substr(0, expected.begin));
    ASSERT_EQ(stop_strings.met() == nullptr ? "" : *stop_strings.met(), expected.met);
    matches += expected.met.empty() ? 0 : 1;
  }
  EXPECT_GT(matches, 1000);
  EXPECT_LT(matches, 4900);
}

}  // namespace longshort::core::stop_strings_test

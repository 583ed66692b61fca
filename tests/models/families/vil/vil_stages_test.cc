#include "models/families/vil/vil_stages.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"

namespace longshort::models::vil_stages_test {

using Words = std::vector<std::string>;

// What parsing gives; a stage per line, attributes in the order l h d n s g p f a r.
std::vector<std::string> Parsed(const std::string& text) {
  const auto stages = ParseVilStages(text, "f");
  if (!stages.ok()) return {std::string(stages.status().message())};
  std::vector<std::string> lines;
  for (const VilStage& stage : *stages) {
    const auto numbers = {stage.number,
                          stage.heads,
                          stage.width,
                          stage.pairs,
                          stage.sparse ? int64_t{1} : 0,
                          stage.global_tokens,
                          stage.patch_size,
                          stage.window_size,
                          stage.absolute_positions ? int64_t{1} : 0,
                          stage.projection_rank};
    std::string line;
    for (const int64_t number : numbers) line += std::to_string(number) + ' ';
    line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

// The error of a network whose second stage is `stage`.
absl::Status SecondStage(const std::string& stage) {
  return ParseVilStages("l1,h2,d16_" + stage + "_l3,h4,d32", "config.json: stages").status();
}

TEST(VilStages, ReadsEveryAttribute) {
  EXPECT_THAT(Parsed("l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,h3,d192,n4,s1,g0,p2,f8,a1,r2_l3,h6,d384,n16,s0,g2,p3,f9,a0,r1_"
                     "l4,h12,d768,n2,s0,g0,p1,f0,a1,r0"),
              testing::ElementsAre("1 3 96 1 1 1 4 7 0 8", "2 3 192 4 1 0 2 8 1 2", "3 6 384 16 0 2 3 9 0 1",
                                   "4 12 768 2 0 0 1 0 1 0"));
}

TEST(VilStages, WhatIsNotWrittenHasItsDefault) {
  // The stage number defaults to 1, so that only the first stage can leave it out.
  EXPECT_THAT(Parsed("n1_l2_l3"),
              testing::ElementsAre("1 3 192 1 1 1 2 7 1 0", "2 3 192 1 1 1 2 7 1 0", "3 3 192 1 1 1 2 7 1 0"));
  EXPECT_THAT(SecondStage("h3"), Refuses(Words{"config.json: stages: stage 2: l is 1; it must be 2"}));
}

TEST(VilStages, AttributesStandInAnyOrder) {
  EXPECT_EQ(Parsed("r8,a0,f7,d96,h3,l1_n4,l2_s0,l3"), Parsed("l1,h3,d96,f7,a0,r8_l2,n4_l3,s0"));
}

TEST(VilStages, FullAttentionIsSticky) {
  const auto stages = ParseVilStages("l1,s1_l2,s0_l3,s1_l4,s1", "f");
  ASSERT_THAT(stages, IsOk());
  EXPECT_TRUE((*stages)[0].sparse);
  for (size_t index = 1; index < 4; ++index) EXPECT_FALSE((*stages)[index].sparse) << index;
}

TEST(VilStages, WhatOnlySparseAttentionRefusesIsTakenByFullAttention) {
  EXPECT_THAT(ParseVilStages("l1,s0,g2,f0,r0_l2,s1,g3,f0,a0,r0_l3,s1,g2", "f"), IsOk());
}

TEST(VilStages, ThereAreThreeOrFour) {
  EXPECT_THAT(ParseVilStages("l1_l2_l3", "f"), IsOk());
  EXPECT_THAT(ParseVilStages("l1_l2_l3_l4", "f"), IsOk());
  EXPECT_THAT(ParseVilStages("l1_l2", "f"), Refuses(Words{"f: 2 stages; there must be 3 or 4"}));
  EXPECT_THAT(ParseVilStages("l1_l2_l3_l4_l4", "f"), Refuses(Words{"5 stages"}));
  EXPECT_THAT(ParseVilStages("l1", "f"), Refuses(Words{"1 stages"}));
}

TEST(VilStages, TheyStandInOrder) {
  EXPECT_THAT(ParseVilStages("l1_l3_l2", "f"), Refuses(Words{"stage 2: l is 3; it must be 2"}));
  EXPECT_THAT(ParseVilStages("l2_l3_l4", "f"), Refuses(Words{"stage 1: l is 2; it must be 1"}));
}

TEST(VilStages, NamesWhatCannotBeRead) {
  EXPECT_THAT(SecondStage("l2,h"), Refuses(Words{"stage 2: h is ''; it must be a whole number in 1..1024"}));
  EXPECT_THAT(SecondStage("l2,d3x"), Refuses(Words{"stage 2: d is '3x'"}));
  EXPECT_THAT(SecondStage("l2,f-7"), Refuses(Words{"stage 2: f is '-7'"}));
  EXPECT_THAT(SecondStage("l2,f 7"), Refuses(Words{"stage 2: f is ' 7'"}));
  EXPECT_THAT(SecondStage("l2,n99999999999999999999"), Refuses(Words{"stage 2: n is '99999999999999999999'"}));
  EXPECT_THAT(SecondStage("l2,x3"), Refuses(Words{"stage 2: unknown attribute 'x3'", "l, h, d, n, s, g, p, f, a, r"}));
  EXPECT_THAT(SecondStage("l2, h3"), Refuses(Words{"stage 2: unknown attribute ' h3'"}));
  EXPECT_THAT(SecondStage("l2,,h3"), Refuses(Words{"stage 2: an attribute is empty"}));
  EXPECT_THAT(SecondStage("l2,"), Refuses(Words{"stage 2: an attribute is empty"}));
  EXPECT_THAT(SecondStage(""), Refuses(Words{"stage 2: an attribute is empty"}));
  EXPECT_THAT(SecondStage("l2,h3,h4"), Refuses(Words{"stage 2: h occurs twice"}));
  EXPECT_THAT(ParseVilStages("", "f"), Refuses(Words{"stage 1: an attribute is empty"}));
  EXPECT_THAT(ParseVilStages(std::string(5000, ','), "f"), Refuses(Words{"5000 bytes; the limit is 4096"}));
}

TEST(VilStages, NamesAValueOutOfRange) {
  for (const std::string attribute :
       {"h0", "d0", "p0", "h1025", "d8193", "n129", "s2", "g257", "p1025", "f1025", "a2", "r1025"}) {
    EXPECT_THAT(SecondStage("l2," + attribute),
                Refuses(Words{"stage 2: " + attribute.substr(0, 1) + " is " + attribute.substr(1) + "; it must be"}));
  }
}

TEST(VilStages, HoldsTheRulesBetweenAttributes) {
  EXPECT_THAT(SecondStage("l2,h3,d16"), Refuses(Words{"stage 2: d is 16; it must be a multiple of h, 3"}));
  EXPECT_THAT(SecondStage("l2,h3,d15,a1"), Refuses(Words{"stage 2: d is 15; absolute positions (a1)"}));
  EXPECT_THAT(SecondStage("l2,h3,d15,a0"), IsOk());
}

// What the official code throws on.
TEST(VilStages, NamesWhatSparseAttentionCannotDo) {
  EXPECT_THAT(SecondStage("l2,g2"), Refuses(Words{"stage 2: g is 2", "0 or 1"}));
  EXPECT_THAT(SecondStage("l2,r0,f0"), Refuses(Words{"stage 2: f is 0 and r is 0"}));
  EXPECT_THAT(SecondStage("l2,r8,f0,a0"), Refuses(Words{"stage 2: a is 0 and f is 0"}));
  EXPECT_THAT(SecondStage("l2,r8,f0,a1"), IsOk());
  EXPECT_THAT(SecondStage("l2,r0,f1,a0"), IsOk());
  // A stage without pairs has no attention at all.
  EXPECT_THAT(SecondStage("l2,n0,g2,r0,f0"), IsOk());
}

TEST(VilStages, CountsThePlacesOfAWindow) {
  const auto places = [](int64_t window_size) { return VilStage{.window_size = window_size}.WindowPlaces(); };
  EXPECT_EQ(places(0), 0);
  EXPECT_EQ(places(1), 9);  // the margin is at least 1
  EXPECT_EQ(places(2), 16);
  EXPECT_EQ(places(5), 81);
  EXPECT_EQ(places(7), 169);
  EXPECT_EQ(places(8), 256);
}

TEST(VilStages, WhatIsWrittenIsReadBack) {
  const std::string text =
      "l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,h3,d192,n4,s0,g2,p2,f7,a1,r0_l3,h6,d384,n16,s0,g0,p1,f0,a0,r0";
  const auto stages = ParseVilStages(text, "f");
  ASSERT_THAT(stages, IsOk());
  EXPECT_EQ(ToText(*stages), text);
}

}  // namespace longshort::models::vil_stages_test

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/fronts/longshort_v1/longshort_v1.h"

namespace longshort::server::names_test {

const CallNames& Names() {
  static const auto* const kRpcs = new std::vector<Rpc>(LongshortV1Rpcs());
  return kRpcs->front().names;
}

TEST(V1Names, AFieldIsNamedByItsPath) {
  EXPECT_EQ(Names().Of("inputs"), "inputs");
  EXPECT_EQ(Names().Of("second_inputs", 0), "second_inputs[0]");
  EXPECT_EQ(Names().Of("sampling.top_p"), "sampling.top_p");
  EXPECT_EQ(Names().Of("sampling.logit_bias", 7), "sampling.logit_bias[7]");
}

TEST(V1Names, APartOfATextIsNamedAfterIt) {
  FieldPath path = {.field = "inputs", .index = 2, .part = TextPart::kText};
  EXPECT_EQ(Names().Of(path), "inputs[2].text");
  path = {.field = "prompt", .part = TextPart::kBytes};
  EXPECT_EQ(Names().Of(path), "prompt.raw");
  path = {.field = "input", .part = TextPart::kIds, .id_index = 5};
  EXPECT_EQ(Names().Of(path), "input.ids.ids[5]");
}

TEST(V1Names, TheKindsOfATextAndOfAnImageAreThoseOfTheContract) {
  EXPECT_STREQ(Names().text_kinds(), "text, raw or ids");
  EXPECT_STREQ(Names().image_kinds(), "encoded, or a tensor with values");
}

}  // namespace longshort::server::names_test

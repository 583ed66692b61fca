#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/weights/model_directory.h"
#include "tests/base/status_matchers.h"

namespace longshort::models::labels_test {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

TEST(Labels, StandOneALine) {
  for (const std::string text : {"daisy\nblue tulip\nr\xc3\xb6schen\n", "daisy\nblue tulip\nr\xc3\xb6schen",
                                 "daisy\r\nblue tulip\r\nr\xc3\xb6schen\r\n",
                                 "\xef\xbb\xbf"
                                 "daisy\r\nblue tulip\nr\xc3\xb6schen"}) {
    const auto labels = ParseLabels(text, 3, "labels.txt");
    ASSERT_THAT(labels, IsOk());
    EXPECT_THAT(*labels, ElementsAre("daisy", "blue tulip", "r\xc3\xb6schen"));
  }
}

TEST(Labels, AreAsManyAsTheClasses) {
  EXPECT_THAT(ParseLabels("a\nb\n", 3, "labels.txt"), Refuses(Words{"labels.txt", "2 labels", "3 classes"}));
  EXPECT_THAT(ParseLabels("", 1, "labels.txt"), Refuses(Words{"0 labels", "1 classes"}));
}

TEST(Labels, NameTheLineThatIsNone) {
  EXPECT_THAT(ParseLabels("a\n\nc\n", 3, "labels.txt"), Refuses(Words{"labels.txt: line 2 is empty"}));
  EXPECT_THAT(ParseLabels("a\n\xff\nc\n", 3, "labels.txt"), Refuses(Words{"labels.txt: line 2 is not UTF-8"}));
}

}  // namespace longshort::models::labels_test

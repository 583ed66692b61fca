#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/families/family.h"
#include "server/lifecycle/run.h"
#include "tests/base/temporary_directory.h"

namespace longshort::server::describe_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(const std::vector<std::string>& arguments) {
  const auto text = DescribeCommand(arguments);
  EXPECT_FALSE(text.ok());
  return std::string(text.status().message());
}

TEST(Describe, APublishedModelIsKnownByItsName) {
  const auto text = DescribeCommand({"vil-ls-base-224"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, AllOf(HasSubstr("stage 4"), HasSubstr("55,834,363")));
}

TEST(Describe, AModelDirectoryAndItsConfigSayTheSame) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("config.json", models::FindPreset("lra-text"));
  const auto text = DescribeCommand({directory.path()});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("379,458"));
  EXPECT_EQ(*text, *DescribeCommand({path}));
}

TEST(Describe, AModelDirectorysClassesAreNamed) {
  const TemporaryDirectory directory;
  directory.Write("config.json", models::FindPreset("lra-text"));
  const std::string labels = directory.Write("labels.txt", "n\xc3\xa9gatif\npositive\n");
  EXPECT_THAT(*DescribeCommand({directory.path()}), HasSubstr("\nclasses 2: n\xc3\xa9gatif, positive\n"));
  directory.Write("config.json", models::FindPreset("lra-listops"));
  EXPECT_THAT(MessageOf({directory.path()}), HasSubstr(labels + ": there are 2 labels, the model has 10 classes"));

  directory.Write("config.json", models::FindPreset("vil-ls-base-224"));
  std::string thousand;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&thousand, "c", i, "\n");
  directory.Write("labels.txt", thousand);
  EXPECT_THAT(*DescribeCommand({directory.path()}),
              HasSubstr("\nclasses 1000: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ... (labels.txt lists all)\n"));
}

TEST(Describe, WhatIsWrongIsNamed) {
  EXPECT_THAT(MessageOf({}), HasSubstr("takes one model, or --fields and no model; models given: 0"));
  EXPECT_THAT(MessageOf({"a", "b"}), HasSubstr("models given: 2"));
  EXPECT_THAT(MessageOf({"--fields", "a"}), HasSubstr("models given: 1"));
  EXPECT_THAT(MessageOf({"vil-ls-tiny"}), AllOf(HasSubstr("vil-ls-tiny: not a file"), HasSubstr("vil-ls-medium-224")));
  EXPECT_THAT(MessageOf({"--verbose"}), HasSubstr("--verbose is not an option"));
  const TemporaryDirectory empty;
  EXPECT_THAT(MessageOf({empty.path()}), HasSubstr("config.json"));
}

TEST(Describe, HelpTeaches) {
  const auto help = DescribeCommand({"--help"});
  ASSERT_TRUE(help.ok()) << help.status();
  EXPECT_THAT(*help, AllOf(HasSubstr("describe MODEL_OR_CONFIG"), HasSubstr("\n  cvt-ls-21-448\n")));
}

}  // namespace longshort::server::describe_command_test

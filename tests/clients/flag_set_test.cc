#include "clients/cpp/flag_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort {
namespace {

using testing::ElementsAre;

struct Values {
  std::string text = "default";
  bool on = false;
  int32_t number = 0;
  std::optional<double> real;
  std::vector<std::string> list;
  std::vector<TokenBias> biases;
  absl::Duration time;
};

FlagSet MakeFlags(Values& values) {
  FlagSet flags;
  flags.Add("text", "TEXT", "Some text.", &values.text);
  flags.Add("on", "", "A switch.", &values.on);
  flags.Add("number", "N", "A number.", &values.number);
  flags.Add("real", "X", "Another number.", &values.real);
  flags.Add("list", "TEXT", "Many.", &values.list);
  flags.Add("bias", "ID:X", "Biases.", &values.biases);
  flags.Add("time", "TIME", "A time.", &values.time);
  return flags;
}

TEST(FlagSet, FlagsStandAnywhereInBothForms) {
  Values values;
  const auto others = MakeFlags(values).Parse({"a", "--text=x=y", "--number", "-3", "-", "--on", "--real=0.5", "b"});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(*others, ElementsAre("a", "-", "b"));
  EXPECT_EQ(values.text, "x=y");
  EXPECT_EQ(values.number, -3);
  EXPECT_TRUE(values.on);
  EXPECT_EQ(values.real, 0.5);
}

TEST(FlagSet, UnusedFlagsKeepTheirDefaults) {
  Values values;
  ASSERT_TRUE(MakeFlags(values).Parse({}).ok());
  EXPECT_EQ(values.text, "default");
  EXPECT_FALSE(values.real.has_value());
  EXPECT_TRUE(values.list.empty());
}

TEST(FlagSet, ListsCollectEveryUse) {
  Values values;
  ASSERT_TRUE(MakeFlags(values).Parse({"--list=a", "--bias=7:-1.5", "--list", "", "--time=1m30s"}).ok());
  EXPECT_THAT(values.list, ElementsAre("a", ""));
  ASSERT_EQ(values.biases.size(), 1U);
  EXPECT_EQ(values.biases[0].token, 7);
  EXPECT_EQ(values.biases[0].bias, -1.5F);
  EXPECT_EQ(values.time, absl::Seconds(90));
}

TEST(FlagSet, TwoDashesEndTheFlags) {
  Values values;
  const auto others = MakeFlags(values).Parse({"--on=false", "--", "--text=x"});
  ASSERT_TRUE(others.ok());
  EXPECT_THAT(*others, ElementsAre("--text=x"));
  EXPECT_EQ(values.text, "default");
}

TEST(FlagSet, LeadingFlagsEndAtTheFirstOtherArgument) {
  Values values;
  const auto rest = MakeFlags(values).ParseLeading({"--text", "x", "command", "--unknown"});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(*rest, ElementsAre("command", "--unknown"));
  EXPECT_EQ(values.text, "x");
}

TEST(FlagSet, ErrorsNameTheFlagAndTheValue) {
  Values values;
  const auto message = [&](const std::string& argument) {
    return std::string(MakeFlags(values).Parse({argument}).status().message());
  };
  EXPECT_EQ(message("--unknown=1"), "unknown flag --unknown");
  EXPECT_EQ(message("-t"), "unknown flag -t");
  EXPECT_EQ(message("--number"), "--number needs a value: --number=N");
  EXPECT_EQ(message("--number=1.5"), "--number: \"1.5\" is not of the form N");
  EXPECT_EQ(message("--number=4294967296"), "--number: \"4294967296\" is not of the form N");
  EXPECT_EQ(message("--on=perhaps"), "--on: \"perhaps\" is not of the form true or false");
  EXPECT_EQ(message("--bias=7"), "--bias: \"7\" is not of the form ID:X");
  EXPECT_EQ(message("--time=-1s"), "--time: \"-1s\" is not of the form TIME");
}

TEST(FlagSet, HelpIsALineAFlagInColumns) {
  FlagSet flags;
  bool on = false;
  std::string text;
  flags.Add("on", "", "A switch.", &on);
  flags.Add("text", "TEXT", "Some text.", &text);
  EXPECT_EQ(flags.Help(), "  --on         A switch.\n  --text=TEXT  Some text.\n");
}

}  // namespace
}  // namespace longshort

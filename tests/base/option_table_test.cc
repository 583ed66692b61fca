#include "base/option_table.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"

namespace longshort::option_table_test {

using testing::ElementsAre;
using testing::HasSubstr;

struct Values {
  std::string text = "default";
  bool on = false;
  int32_t number = 0;
  uint64_t seed = 1;
  std::optional<double> real;
  std::vector<std::string> list;
  absl::Duration time = absl::Seconds(30);
};

OptionTable MakeTable(Values& values) {
  OptionTable table;
  table.Add("text", "TEXT", "Some text.", &values.text);
  table.AddSwitch("on", "A switch.", &values.on);
  table.Add("number", "N", "A number.", &values.number);
  table.Add("seed", "N", "A number that is not negative.", &values.seed);
  table.Add("real-number", "X", "Another number.", &values.real);
  table.Add("list", "TEXT", "Many.", &values.list);
  table.Add("time", "TIME", "A time.", &values.time);
  return table;
}

std::string MessageOf(const std::vector<std::string>& arguments) {
  Values values;
  return RefusalOf(MakeTable(values).Parse(arguments));
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(OptionTable, OptionsStandAnywhereInBothForms) {
  Values values;
  const auto others = MakeTable(values).ParseAmongOthers(
      {"a", "--text=x=y", "--number", "-3", "-", "--on", "--real-number=0.5", "b", "--time=1m30s"});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(*others, ElementsAre("a", "-", "b"));
  EXPECT_EQ(values.text, "x=y");
  EXPECT_EQ(values.number, -3);
  EXPECT_TRUE(values.on);
  EXPECT_EQ(values.real, 0.5);
  EXPECT_EQ(values.time, absl::Seconds(90));
}

TEST(OptionTable, OptionsThatAreNotGivenKeepTheirDefaults) {
  Values values;
  ASSERT_TRUE(MakeTable(values).Parse({}).ok());
  EXPECT_EQ(values.text, "default");
  EXPECT_FALSE(values.real.has_value());
  EXPECT_TRUE(values.list.empty());
}

TEST(OptionTable, TheLastValueWins) {
  Values values;
  ASSERT_TRUE(MakeTable(values).Parse({"--number=1", "--on", "--number=2", "--on=false"}).ok());
  EXPECT_EQ(values.number, 2);
  EXPECT_FALSE(values.on);
}

TEST(OptionTable, ListsCollectEveryUse) {
  Values values;
  ASSERT_TRUE(MakeTable(values).Parse({"--list=a", "--list", ""}).ok());
  EXPECT_THAT(values.list, ElementsAre("a", ""));
}

TEST(OptionTable, TwoDashesEndTheOptions) {
  Values values;
  const auto others = MakeTable(values).ParseAmongOthers({"--on=false", "--", "--text=x"});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(*others, ElementsAre("--text=x"));
  EXPECT_EQ(values.text, "default");
}

TEST(OptionTable, LeadingOptionsEndAtTheFirstOtherArgument) {
  Values values;
  const auto rest = MakeTable(values).ParseLeading({"--text", "x", "command", "--unknown"});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(*rest, ElementsAre("command", "--unknown"));
  EXPECT_EQ(values.text, "x");
}

TEST(OptionTable, FilesAreReadInTheirPlace) {
  const std::string inner = WriteFile("inner", "--number=2\n");
  const std::string outer = WriteFile("outer", "# comment\n\n  --text=file\n--flagfile=" + inner + "\n");
  Values values;
  const absl::Status status = MakeTable(values).Parse({"--number=1", "--flagfile", outer, "--text=argument"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(values.number, 2);
  EXPECT_EQ(values.text, "argument");
}

TEST(OptionTable, ErrorsInFilesNameFileAndLine) {
  const std::string path = WriteFile("wrong", "\n--number=x\n");
  EXPECT_THAT(MessageOf({"--flagfile=" + path}), HasSubstr(path + ":2: --number is 'x'; it must be"));
  EXPECT_THAT(MessageOf({"--flagfile=/no/such/file"}), HasSubstr("/no/such/file cannot be read"));
}

TEST(OptionTable, AFileThatNamesItselfIsRefused) {
  const std::string path = testing::TempDir() + "/circle";
  WriteFile("circle", "--flagfile=" + path + "\n");
  EXPECT_THAT(MessageOf({"--flagfile=" + path}), HasSubstr("more than 8 deep"));
}

TEST(OptionTable, UnknownOptionsAreNamedWithTheNearest) {
  EXPECT_EQ(MessageOf({"--real_number=1"}), "--real_number is not an option; did you mean --real-number?");
  EXPECT_EQ(MessageOf({"--something-else=1"}), "--something-else is not an option");
  // Two letters away from --on, but so is any other name of two letters.
  EXPECT_EQ(MessageOf({"--id"}), "--id is not an option");
  EXPECT_EQ(MessageOf({"-t"}), "'-t' is not an option; options begin with -- (see --help)");
  EXPECT_EQ(MessageOf({"file"}), "'file' is not an option; options begin with -- (see --help)");
}

TEST(OptionTable, WrongValuesAreNamedWithWhatTheyMustBe) {
  EXPECT_EQ(MessageOf({"--number"}), "--number needs a value: --number=N");
  EXPECT_EQ(MessageOf({"--number=1.5"}), "--number is '1.5'; it must be a whole number in [-2^31, 2^31)");
  EXPECT_EQ(MessageOf({"--number=2147483648"}), "--number is '2147483648'; it must be a whole number in [-2^31, 2^31)");
  EXPECT_EQ(MessageOf({"--seed=-1"}), "--seed is '-1'; it must be a whole number in [0, 2^64)");
  EXPECT_EQ(MessageOf({"--real-number=x"}), "--real-number is 'x'; it must be a number");
  EXPECT_EQ(MessageOf({"--on=perhaps"}), "--on is 'perhaps'; it must be true or false");
  EXPECT_EQ(MessageOf({"--time=5"}), "--time is '5'; it must be a duration with its unit, such as 500ms, 30s or 2m");
}

TEST(OptionTable, RangesHoldOnTheCommandLineAndInFiles) {
  int64_t threads = 4;
  std::optional<double> ratio;
  absl::Duration interval = absl::ZeroDuration();
  OptionTable table;
  table.Add("threads", "N", "Threads.", &threads, {1, 1024});
  table.Add("ratio", "X", "A part.", &ratio, {0, 1});
  table.Add("interval", "TIME", "An interval.", &interval, {absl::Seconds(1), absl::Hours(1), true});
  EXPECT_TRUE(table.Parse({"--threads=1024", "--ratio=1", "--interval=0s"}).ok());
  EXPECT_EQ(table.Parse({"--threads=0"}).message(), "--threads is '0'; it must be in [1, 1024]");
  EXPECT_EQ(table.Parse({"--ratio=nan"}).message(), "--ratio is 'nan'; it must be in [0, 1]");
  EXPECT_EQ(table.Parse({"--interval=10ms"}).message(), "--interval is '10ms'; it must be 0 or in [1s, 1h]");
  const std::string path = WriteFile("out_of_range", "--threads=1025\n");
  EXPECT_EQ(table.Parse({"--flagfile=" + path}).message(), path + ":1: --threads is '1025'; it must be in [1, 1024]");
}

TEST(OptionTable, AZeroLimitIsNone) {
  int64_t max = NoLimit<int64_t>();
  OptionTable table;
  table.AddLimit("most", "N", "A limit.", &max, int64_t{10});
  EXPECT_EQ(table.options()[0].default_text, "0");
  EXPECT_TRUE(table.Parse({"--most=3"}).ok());
  EXPECT_EQ(max, 3);
  EXPECT_TRUE(table.Parse({"--most=0"}).ok());
  EXPECT_EQ(max, NoLimit<int64_t>());
  EXPECT_EQ(table.options()[0].value(), "0");
  EXPECT_EQ(table.Parse({"--most=11"}).message(), "--most is '11'; it must be in [0, 10]");
}

TEST(OptionTable, AChoiceTakesItsWordsOnly) {
  int level = 2;
  OptionTable table;
  table.AddChoice<int>("level", {{"low", 1}, {"high", 2}}, "A level.", &level);
  EXPECT_EQ(table.options()[0].default_text, "high");
  EXPECT_TRUE(table.Parse({"--level=low"}).ok());
  EXPECT_EQ(level, 1);
  EXPECT_EQ(table.Parse({"--level=2"}).message(), "--level is '2'; it must be low or high");
}

TEST(OptionTable, MarkdownHasATableForEachSection) {
  int64_t threads = 4;
  HelpForm help = HelpForm::kNone;
  OptionTable table;
  table.BeginSection("First:");
  table.Add("threads", "N|M", "Threads of <one> step.", &threads, {1, 8});
  table.BeginSection("Second:");
  table.AddHelp(&help, HelpForm::kMarkdown);
  EXPECT_THAT(table.Markdown(), testing::StartsWith("## First\n\n"
                                                    "| option | default | range | meaning |\n|---|---|---|---|\n"
                                                    "| `--threads=N\\|M` | `4` | 1 to 8 | Threads of &lt;one> step. |\n"
                                                    "\n## Second\n\n"
                                                    "| option | default | range | meaning |\n|---|---|---|---|\n"
                                                    "| `--help` |  |  | "));
  EXPECT_TRUE(table.Parse({"--help=markdown"}).ok());
  EXPECT_EQ(help, HelpForm::kMarkdown);
  EXPECT_EQ(table.Parse({"--help=html"}).message(), "--help is 'html'; it must be absent or markdown");
}

TEST(OptionTable, OnlyHelpOfAllShowsCommonOptions) {
  bool own = false, common = false;
  HelpForm help = HelpForm::kNone;
  OptionTable table;
  table.AddSwitch("own", "Of this command.", &own);
  table.BeginCommonSection("Options of every command:");
  table.AddSwitch("common", "Of all.", &common);
  table.AddHelp(&help, HelpForm::kAll);
  EXPECT_EQ(table.Help(HelpForm::kText), "  --own\n      Of this command.\n");
  EXPECT_THAT(table.Help(HelpForm::kAll),
              testing::AllOf(testing::HasSubstr("Options of every command:\n  --common\n      Of all.\n  --help\n"),
                             testing::HasSubstr("  --flagfile=FILE")));
  EXPECT_TRUE(table.Parse({"--help=all"}).ok());
  EXPECT_EQ(help, HelpForm::kAll);
  EXPECT_TRUE(table.Parse({"--help", "--common"}).ok());
  EXPECT_EQ(help, HelpForm::kText);
}

TEST(OptionTable, HelpShowsHintsAndDefaultsInSections) {
  bool on = false;
  std::string text;
  absl::Duration time = absl::Minutes(2);
  OptionTable table;
  table.BeginSection("Empty:");
  table.BeginSection("First:");
  table.AddSwitch("on", "A switch.", &on);
  table.Add("text", "TEXT", "Some text.", &text);
  table.BeginSection("Second:");
  // 6 blanks and 94 letters fill the 100 columns of a line.
  table.Add("time", "TIME", std::string(94, 'x') + " y", &time);
  EXPECT_THAT(table.Help(), testing::StartsWith("First:\n"
                                                "  --on\n"
                                                "      A switch.\n"
                                                "  --text=TEXT  (no default)\n"
                                                "      Some text.\n"
                                                "\n"
                                                "Second:\n"
                                                "  --time=TIME  (default: 2m)\n"
                                                "      " +
                                                std::string(94, 'x') +
                                                "\n"
                                                "      y\n"
                                                "  --flagfile=FILE  (no default)\n"));
}

}  // namespace longshort::option_table_test

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/train/training_run.h"
#include "tests/models/train/training_folder.h"

namespace longshort::models::next_steps_test {

using ::testing::HasSubstr;

TEST(NextSteps, NameTheModelItsFigureAndTheCommands) {
  const std::string text = NextSteps("zoo/mine/3", "1.9 bits/byte", "longshort-train", "", "generate");
  EXPECT_EQ(text,
            "the model is in zoo/mine/3: held-out 1.9 bits/byte\n"
            "serve it:  longshort-server --model-repository=zoo\n"
            "call it:   longshort --model=mine generate\n");
  EXPECT_THAT(NextSteps("mine/3/", "", "x", "", "generate"), HasSubstr("--model-repository=."));
  EXPECT_THAT(NextSteps("/mine/3", "", "x", "", "generate"), HasSubstr("--model-repository=/\n"));
  EXPECT_EQ(NextSteps("some/my folder", "", "x", "", "generate"),
            "the model is in some/my folder\n"
            "move it:   mkdir -p 'my_models/my folder' && mv 'some/my folder' 'my_models/my folder/1'\n"
            "serve it:  longshort-server --model-repository=my_models\n"
            "call it:   longshort --model='my folder' generate\n");
}

TEST(NextSteps, CanBePastedIntoAShell) {
  const TrainingFolder folder;
  folder.Write("my bin/longshort-server", "");
  folder.Write("my bin/longshort", "");
  const std::string program = folder.Path("my bin/longshort-train"), bin = folder.Path("my bin/");
  const std::string text = NextSteps("it's mine/a b/1", "", program, "printf %s 'x y'", "classify -");
  EXPECT_THAT(text, HasSubstr("'" + bin + "longshort-server' --model-repository='it'\\''s mine'\n"));
  EXPECT_THAT(text, HasSubstr("printf %s 'x y' | '" + bin + "longshort' --model='a b' classify -\n"));
  EXPECT_THAT(NextSteps("a/b/1", "", folder.Path("elsewhere/longshort-train"), "", ""),
              HasSubstr("  longshort-server --"));
}

TEST(InputCommand, PrintsTheBeginningOfAText) {
  EXPECT_EQ(InputCommand("a film\nsecond line"), "printf %s 'a film'");
  EXPECT_EQ(InputCommand("\x1b[2J"), "") << "a terminal gets no control characters";
  EXPECT_EQ(InputCommand(std::string(98, 'w') + " ends here"), "printf %s " + std::string(98, 'w'));
  EXPECT_EQ(InputCommand(std::string(101, 'w')), "printf %s " + std::string(100, 'w')) << "there is no space to cut at";
  EXPECT_EQ(InputCommand(std::string(99, 'w') + "\xc3\xa9"), "printf %s " + std::string(99, 'w'))
      << "not within a character";
}

TEST(ShellWord, IsReadAsItWasByAShell) {
  EXPECT_EQ(ShellWord("my_models/a-b/1"), "my_models/a-b/1");
  const TrainingFolder folder;
  for (const std::string word : {"", "a b", "it's", "$HOME `x` \"y\" \\ *", "~", "a\nb", "-n", "#", "caf\xc3\xa9"}) {
    const std::string command = "printf %s " + ShellWord(word) + " > " + ShellWord(folder.Path("out"));
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_EQ(folder.Read("out"), word);
  }
}

}  // namespace longshort::models::next_steps_test

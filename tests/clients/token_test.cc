// `longshort token new`: what it prints, and what it refuses.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"

namespace longshort::client::token_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class TokenTest : public ProgramTest {
 protected:
  // The lines that a run prints.
  std::vector<std::string> Lines(const std::vector<std::string>& arguments) {
    EXPECT_EQ(RunAlone(arguments), ExitCode::kOk) << error_;
    return absl::StrSplit(output_, '\n', absl::SkipEmpty());
  }
};

TEST_F(TokenTest, PrintsTheTokenOnceAndALineThatDoesNotHaveIt) {
  const std::vector<std::string> lines = Lines({"token", "new", "alice"});
  ASSERT_EQ(lines.size(), 2U);
  // 256 bits are 43 characters of base64.
  EXPECT_THAT(lines[0], AllOf(StartsWith("ls_"), testing::SizeIs(3 + 43)));
  EXPECT_THAT(lines[1], MatchesRegex("alice token-sha256=[0-9a-f]{64} scopes=infer,sessions"));
  EXPECT_THAT(lines[1], Not(HasSubstr(lines[0].substr(3))));
}

TEST_F(TokenTest, EachIsAnother) {
  EXPECT_NE(Lines({"token", "new", "alice"})[0], Lines({"token", "new", "alice"})[0]);
}

TEST_F(TokenTest, TheLineSaysWhatWasAskedFor) {
  EXPECT_THAT(Lines({"token", "new", "batch", "--scopes=infer,observe", "--models=a,vil-*", "--priority=high",
                     "--calls-per-second=2.5", "--tokens-per-second=5000", "--expires=30d"})[1],
              MatchesRegex("batch token-sha256=[0-9a-f]+ scopes=infer,observe models=a,vil-\\* priority=high "
                           "calls-per-second=2.5 tokens-per-second=5000 expires=20..-..-..T..:..:..Z"));
}

TEST_F(TokenTest, JsonHasBoth) {
  EXPECT_THAT(Lines({"token", "new", "alice", "--json"})[0],
              MatchesRegex(R"(\{"token":"ls_[A-Za-z0-9_-]{43}","line":"alice token-sha256=[0-9a-f]{64} .*"\})"));
}

TEST_F(TokenTest, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> wrong = {
      {{"token"}, "new and the identity's NAME"},
      {{"token", "old", "alice"}, "new and the identity's NAME"},
      {{"token", "new", "a/b"}, "a/b"},
      {{"token", "new", "alice", "--scopes=infr"}, "infer, sessions, manage and observe"},
      {{"token", "new", "alice", "--scopes=infer,infer"}, "each at most once"},
      {{"token", "new", "alice", "--models=a b"}, "--models is 'a b'"},
      {{"token", "new", "alice", "--models="}, "1 to 256 bytes"},
      {{"token", "new", "alice", "--models=a,,b"}, "1 to 256 bytes"},
      {{"token", "new", "alice", "--models=a*b"}, "each may end with *"},
      {{"token", "new", "alice", "--models=" + std::string(257, 'a')}, "1 to 256 bytes"},
      {{"token", "new", "alice", "--calls-per-second=0"}, "it must be in [0.001, 1e+09]"},
      {{"token", "new", "alice", "--expires=soon"}, "30d"},
      {{"token", "new", "alice", "--expires=-3d"}, "[1s, 36500d]"},
  };
  for (const auto& [arguments, part] : wrong) {
    EXPECT_EQ(RunAlone(arguments), ExitCode::kUsage);
    EXPECT_THAT(error_, HasSubstr(part));
    EXPECT_EQ(output_, "");
  }
}

}  // namespace longshort::client::token_test

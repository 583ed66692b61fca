// The exit codes that --help promises, for errors of the server, of the connection and of the command line.
#include <string>

#include "clients/cpp/failures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"

namespace longshort::client::exit_code_test {

using testing::HasSubstr;

using ExitCodeTest = ProgramTest;

struct Case {
  grpc::StatusCode code;
  ExitCode expected;
};

class ServerErrorTest : public ProgramTest, public testing::WithParamInterface<Case> {};

TEST_P(ServerErrorTest, BecomesTheExitCodeAndItsMessageIsShown) {
  server_.status = grpc::Status(GetParam().code, "prompt: what the server said");
  EXPECT_EQ(Run({"generate", "--prompt=a"}), GetParam().expected);
  EXPECT_THAT(error_, HasSubstr("prompt: what the server said"));
}

INSTANTIATE_TEST_SUITE_P(Codes, ServerErrorTest,
                         testing::Values(Case{grpc::StatusCode::INVALID_ARGUMENT, ExitCode::kInvalid},
                                         Case{grpc::StatusCode::NOT_FOUND, ExitCode::kInvalid},
                                         Case{grpc::StatusCode::UNIMPLEMENTED, ExitCode::kInvalid},
                                         Case{grpc::StatusCode::UNAVAILABLE, ExitCode::kUnavailable},
                                         Case{grpc::StatusCode::RESOURCE_EXHAUSTED, ExitCode::kUnavailable},
                                         Case{grpc::StatusCode::DEADLINE_EXCEEDED, ExitCode::kCancelled},
                                         Case{grpc::StatusCode::CANCELLED, ExitCode::kCancelled},
                                         Case{grpc::StatusCode::INTERNAL, ExitCode::kOther},
                                         Case{grpc::StatusCode::UNKNOWN, ExitCode::kOther}));

TEST_F(ExitCodeTest, ATooLargeMessageIsNotRetried) {
  server_.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max (9 vs. 8)");
  EXPECT_EQ(Run({"generate", "--prompt=a"}), ExitCode::kInvalid);
}

TEST_F(ExitCodeTest, ExitCodesHaveTheNumbersOfTheHelp) {
  EXPECT_EQ(static_cast<int>(ExitCode::kOk), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::kInvalid), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kUnavailable), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::kCancelled), 4);
  EXPECT_EQ(static_cast<int>(ExitCode::kOther), 5);
}

TEST_F(ExitCodeTest, AnAddressWithoutServerIsUnavailableAndNamed) {
  // Port 1 is privileged and without a service.
  EXPECT_EQ(RunAlone({"--server=127.0.0.1:1", "models"}), ExitCode::kUnavailable);
  EXPECT_THAT(error_, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(error_, HasSubstr("--server"));
}

TEST_F(ExitCodeTest, TimeoutEndsAStreamThatHangs) {
  server_.stream_hangs = true;
  EXPECT_EQ(Run({"--timeout=50ms", "generate", "--prompt=a"}), ExitCode::kCancelled);
  EXPECT_THAT(error_, HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(ExitCodeTest, WrongCommandLinesAreUsageErrorsThatNameWhatIsWrong) {
  EXPECT_EQ(Run({"scor"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("\"scor\""));
  EXPECT_EQ(Run({"score", "--temperature=1"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--temperature"));
  EXPECT_EQ(Run({"generate", "--top-k=many"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--top-k is 'many'"));
  EXPECT_EQ(Run({"generate", "--logit-bias=7"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--logit-bias is '7'; it must be a token id, a colon and a number"));
  EXPECT_EQ(Run({"models", "--timeout=-1s"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--timeout is '-1s'; it must be in [1ms, inf]"));
  EXPECT_EQ(Run({"generate", "--prompt=a", "file"}), ExitCode::kUsage);
  EXPECT_EQ(Run({"--model=characters/newest", "models"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("characters/newest"));
  EXPECT_EQ(Run({"score", "/does/not/exist"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("/does/not/exist: No such file"));
  EXPECT_EQ(Run({"models", "--client-id=Zo\xc3\xab"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--client-id is \"Zo\\xc3\\xab\""));
  EXPECT_EQ(RunAlone({"models", "--server="}), ExitCode::kUsage);
  EXPECT_EQ(Run({}), ExitCode::kUsage);
}

TEST_F(ExitCodeTest, APatternThatMatchesNoImageIsAUsageError) {
  server_.models = {FlowersModel()};
  EXPECT_EQ(Run({"classify", "/does/not/*.jpg"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("/does/not/*.jpg: No such file"));
}

TEST_F(ExitCodeTest, HelpAndVersionNeedNoServer) {
  EXPECT_EQ(RunAlone({"--help"}), ExitCode::kOk);
  EXPECT_THAT(output_, testing::Not(HasSubstr("Exit codes:")));
  EXPECT_EQ(RunAlone({"--help=all"}), ExitCode::kOk);
  EXPECT_THAT(output_, testing::AllOf(HasSubstr("--token-file="), HasSubstr("Exit codes:")));
  for (const std::string command : {"score", "classify", "generate", "models", "tokenize"}) {
    EXPECT_EQ(RunAlone({command, "--help"}), ExitCode::kOk);
    EXPECT_THAT(output_, HasSubstr("Usage: longshort " + command));
    EXPECT_THAT(output_, HasSubstr("Examples:"));
    EXPECT_THAT(output_, testing::Not(HasSubstr("  --token-file=")));
    EXPECT_EQ(RunAlone({command, "--help=all"}), ExitCode::kOk);
    EXPECT_THAT(output_, HasSubstr("  --token-file="));
  }
  EXPECT_EQ(RunAlone({"models", "--version"}), ExitCode::kOk);
  EXPECT_THAT(output_, testing::StartsWith("longshort "));
  EXPECT_EQ(RunAlone({"--version"}), ExitCode::kOk);
  EXPECT_THAT(output_, testing::StartsWith("longshort "));
}

}  // namespace longshort::client::exit_code_test

// `longshort session`: sessions in files.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::session_test {

using testing::HasSubstr;

class SessionTest : public ProgramTest {
 protected:
  SessionTest() {
    v1::SessionPart part;
    part.mutable_header()->set_data_bytes(5 << 20);
    part.mutable_header()->set_session_tokens(17);
    server_.session.push_back(part);
    for (int i = 0; i < 5; ++i) {
      part.set_data(std::string(1 << 20, static_cast<char>(i)));
      server_.session.push_back(part);
    }
    part.mutable_seal()->set_checksum("sum");
    server_.session.push_back(part);
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_ / "talk.session";
};

TEST_F(SessionTest, WhatWasExportedIsImportedPartForPart) {
  ASSERT_EQ(Run({"session", "export", "talk", file_, "--model=characters/3", "--client-id=alice"}), ExitCode::kOk);
  EXPECT_EQ(output_, "session talk: 17 tokens, 5242880 bytes\n");
  EXPECT_EQ(server_.export_request.session_id(), "talk");
  EXPECT_EQ(server_.export_request.model().version(), 3);
  EXPECT_EQ(server_.session_client, "alice");
  ASSERT_EQ(Run({"session", "import", "chat", file_, "--client-id=bob"}), ExitCode::kOk);
  EXPECT_EQ(output_, "session chat: 17 tokens\n");
  EXPECT_EQ(server_.session_client, "bob");
  ASSERT_EQ(server_.import_requests.size(), 1 + server_.session.size());
  EXPECT_EQ(server_.import_requests[0].beginning().session_id(), "chat");
  for (size_t i = 0; i < server_.session.size(); ++i) {
    EXPECT_EQ(server_.import_requests[i + 1].part().SerializeAsString(), server_.session[i].SerializeAsString());
  }
}

TEST_F(SessionTest, GoesThroughAPipe) {
  ASSERT_EQ(Run({"session", "export", "talk", "-"}), ExitCode::kOk);
  EXPECT_THAT(error_, HasSubstr("17 tokens"));
  ASSERT_EQ(Run({"session", "import", "talk", "-"}, output_), ExitCode::kOk);
  EXPECT_EQ(server_.import_requests.size(), 1 + server_.session.size());
}

TEST_F(SessionTest, AnExportThatFailsLeavesNoFileAndNoOldOneChanged) {
  server_.status = grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no session talk");
  EXPECT_EQ(Run({"session", "export", "talk", file_}), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("there is no session talk"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_EQ(Run({"session", "export", "talk", folder_ / "no/such/folder"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("/no/such/folder cannot be written: No such file"));
  EXPECT_EQ(Run({"session", "export", "talk", "/dev/full"}), ExitCode::kOther);
  EXPECT_THAT(error_, HasSubstr("/dev/full cannot be written: No space left"));
}

TEST_F(SessionTest, AFileIsItsOwnersOnlyAndALinkToItStaysOne) {
  folder_.Write("talk.session", "old");
  const std::string link = folder_ / "link";
  std::filesystem::create_symlink("talk.session", link);
  ASSERT_EQ(Run({"session", "export", "talk", link}), ExitCode::kOk);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file_).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(SessionTest, WhatIsNoFileIsWrittenToAndNotReplaced) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    std::ifstream pipe(file_, std::ios::binary);
    read.assign(std::istreambuf_iterator<char>(pipe), {});
  });
  ASSERT_EQ(Run({"session", "export", "talk", file_}), ExitCode::kOk);
  reader.join();
  EXPECT_TRUE(std::filesystem::is_fifo(file_));
  ASSERT_EQ(Run({"session", "import", "talk", "-"}, read), ExitCode::kOk);
  EXPECT_EQ(server_.import_requests.size(), 1 + server_.session.size());
}

TEST_F(SessionTest, AnExportTakesNothingAwayButWhatItMade) {
  const std::string other = folder_.Write("talk.session.part", "precious");
  server_.status = grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no session talk");
  EXPECT_EQ(Run({"session", "export", "talk", file_}), ExitCode::kInvalid);
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(SessionTest, AFileThatIsNoSessionIsNamed) {
  ASSERT_EQ(Run({"session", "export", "talk", file_}), ExitCode::kOk);
  std::filesystem::resize_file(file_, (3 << 20) + 100);
  server_.status = grpc::Status(grpc::StatusCode::DATA_LOSS, "cut short");
  EXPECT_EQ(Run({"session", "import", "talk", file_}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("talk.session is not an exported session, or is damaged"));
  EXPECT_EQ(Run({"session", "import", "talk", "/nowhere"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("/nowhere cannot be read"));
}

TEST_F(SessionTest, ShowsHowFarItIsToAPerson) {
  at_terminal_ = true;
  ASSERT_EQ(Run({"session", "export", "talk", file_}), ExitCode::kOk);
  EXPECT_THAT(error_, HasSubstr("0/5 MiB"));
  ASSERT_EQ(Run({"session", "import", "talk", file_}), ExitCode::kOk);
  EXPECT_THAT(error_, HasSubstr("0/5 MiB"));
}

TEST_F(SessionTest, AreListedFromAllPages) {
  for (const char* id : {"talk", "chat"}) {
    v1::ListedSession& listed = server_.listed_sessions.emplace_back();
    listed.set_session_id(id);
    listed.set_session_tokens(17);
  }
  server_.listed_sessions[0].set_owner("alice");
  server_.listed_sessions[0].set_idle_seconds(61.7);
  server_.listed_sessions[1].set_in_use(true);
  ASSERT_EQ(Run({"session", "list", "--all-owners"}), ExitCode::kOk);
  EXPECT_EQ(output_,
            "MODEL         OWNER  SESSION  TOKENS  IDLE\n"
            "characters/3  alice  talk     17      62 s\n"
            "characters/3  -      chat     17      in use\n");
  EXPECT_TRUE(server_.list_request.all_owners());
  EXPECT_EQ(server_.list_request.model().version(), 3);
  ASSERT_EQ(Run({"session", "list", "--json", "--model=characters/2"}), ExitCode::kOk);
  EXPECT_THAT(output_,
              HasSubstr(R"({"name":"characters/2","owner":"alice","session_id":"talk","session_tokens":"17")"));
  EXPECT_FALSE(server_.list_request.all_owners());
  server_.status = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "needs the scope manage");
  EXPECT_EQ(Run({"session", "list", "--model=characters/2"}), ExitCode::kInvalid);
}

TEST_F(SessionTest, ADrainNeedsAPlaceToGoAndTime) {
  EXPECT_EQ(Run({"session", "drain"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("drain needs --to=HOST:PORT"));
  EXPECT_EQ(Run({"session", "drain", "--to=127.0.0.1:1", "--drain-timeout=0s"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--drain-timeout is '0s'; it must be in [1ms, inf]"));
  const std::string token = folder_.Write("token", "secret");
  EXPECT_EQ(Run({"session", "drain", "--to=elsewhere.example:8500", "--token-file=" + token}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("the token would be sent unencrypted to elsewhere.example:8500"));
}

TEST_F(SessionTest, IsClosed) {
  ASSERT_EQ(Run({"session", "close", "talk"}), ExitCode::kOk);
  EXPECT_EQ(server_.close_request.session_id(), "talk");
}

TEST_F(SessionTest, ACommandLineThatIsWrongIsExplained) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"session"},
                                                    {"session", "export", "talk"},
                                                    {"session", "close", "a", "b"},
                                                    {"session", "rename", "a", "b"}}) {
    EXPECT_EQ(Run(arguments), ExitCode::kUsage);
    EXPECT_THAT(error_, HasSubstr("list, export ID FILE, import ID FILE, close ID, or drain --to=HOST:PORT"));
  }
}

}  // namespace longshort::client::session_test

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/options/listening_sockets.h"
#include "tests/base/temporary_directory.h"

namespace longshort::server::socket_file_test {

using ::testing::HasSubstr;

class SocketFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<ListeningSockets> Bind(int64_t mode = kDefaultSocketMode) const {
    return BindSockets({.option = "listen", .address = *ParseListenAddress("unix:" + path_)}, mode);
  }
  std::string Refusal() const { return std::string(Bind().status().message()); }

  // A socket there that this process has not bound by a SocketFile.
  Descriptor BindForeign() const {
    Descriptor foreign(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(foreign.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return foreign;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/server.sock";
};

TEST_F(SocketFileTest, HasItsModeAndIsRemovedWithItsLock) {
  for (const int64_t mode : {0600, 0660, 0666}) {
    const auto bound = Bind(mode);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_EQ(PathOf(bound->sockets.front().number()), path_);
    struct stat there {};
    ASSERT_EQ(stat(path_.c_str(), &there), 0);
    EXPECT_TRUE(S_ISSOCK(there.st_mode));
    EXPECT_EQ(there.st_mode & 07777, mode);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(SocketFileTest, OneProcessHasIt) {
  const auto first = Bind();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Refusal(), "--listen=unix:" + path_ + " cannot be bound: another process listens on it")
      << "though it does not listen yet";
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketFileTest, ReplacesWhatAKilledProcessHasLeft) {
  BindForeign();
  std::ofstream(path_ + ".lock").close();
  EXPECT_TRUE(Bind().ok());
}

TEST_F(SocketFileTest, RefusesTheSocketOfAnotherProgram) {
  const Descriptor foreign = BindForeign();
  ASSERT_EQ(listen(foreign.number(), 1), 0);
  EXPECT_THAT(Refusal(), HasSubstr("another process listens on it"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketFileTest, RefusesToReplaceAFile) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(Refusal(), HasSubstr("it is a file, and no socket"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(SocketFileTest, SaysWhichFolderIsMissing) {
  std::filesystem::remove_all(directory_.path());
  EXPECT_THAT(Refusal(), HasSubstr("server.sock.lock: No such file or directory"));
}

}  // namespace longshort::server::socket_file_test

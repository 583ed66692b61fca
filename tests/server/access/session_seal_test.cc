#include "server/access/session_seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace longshort::server::session_seal_test {

using testing::HasSubstr;

Seal SealOf(const std::string& key, std::initializer_list<std::string> pieces) {
  SessionSealer sealer = *SessionSealer::Create(key);
  for (const std::string& piece : pieces) EXPECT_TRUE(sealer.Add(piece).ok());
  return *sealer.Finish();
}

// Test case 2 of RFC 4231, and SHA-256 of the same data.
TEST(SessionSeal, IsSha256AndHmacSha256) {
  const Seal seal = SealOf("Jefe", {"what do ya want ", "for nothing?"});
  EXPECT_EQ(absl::BytesToHexString(seal.authentication_code),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(absl::BytesToHexString(seal.checksum), "b381e7fec653fc3ab9b178272366b8ac87fed8d31cb25ed1d0e1f3318644c89c");
}

TEST(SessionSeal, DistinguishesChangedDataFromAnotherKey) {
  const Seal seal = SealOf("key", {"data"});
  EXPECT_TRUE(CheckSeal(seal, SealOf("key", {"da", "ta"})).ok());
  EXPECT_EQ(CheckSeal(seal, SealOf("key", {"dada"})).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CheckSeal(seal, SealOf("other key", {"data"})).code(), absl::StatusCode::kPermissionDenied);
  for (const size_t bytes : {0, 1, 31, 33}) {
    Seal other = seal;
    other.authentication_code.resize(bytes);
    EXPECT_EQ(CheckSeal(seal, other).code(), absl::StatusCode::kPermissionDenied) << bytes;
    other = seal;
    other.checksum.resize(bytes);
    EXPECT_EQ(CheckSeal(seal, other).code(), absl::StatusCode::kDataLoss) << bytes;
  }
}

class SessionKeyTest : public testing::Test {
 protected:
  std::string Write(const std::string& content, mode_t mode = 0600) {
    std::ofstream(path_) << content;
    chmod(path_.c_str(), mode);
    return path_;
  }
  ~SessionKeyTest() override { std::remove(path_.c_str()); }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/session_key_", getpid());
};

TEST_F(SessionKeyTest, IsAllOfTheFile) {
  const std::string key = std::string(31, 'k') + "\n";
  EXPECT_EQ(*ReadSessionKey(Write(key)), key);
  EXPECT_EQ(*ReadSessionKey(Write(key, 0440)), key);
}

TEST_F(SessionKeyTest, ErrorsNameTheFile) {
  const auto wrong = [](const std::string& path) { return std::string(ReadSessionKey(path).status().message()); };
  EXPECT_THAT(wrong("/nowhere"),
              HasSubstr("--session-key-file=/nowhere cannot be read: /nowhere: cannot open: No such"));
  EXPECT_THAT(wrong(Write(std::string(31, 'k'))), HasSubstr("has 31 bytes; a key has 32 to 4096"));
  EXPECT_THAT(wrong(Write(std::string(4097, 'k'))), HasSubstr("4097 bytes; the limit is 4096"));
  EXPECT_THAT(wrong(Write(std::string(32, 'k'), 0604)), HasSubstr("is accessible to all users"));
  EXPECT_THAT(wrong(testing::TempDir()), HasSubstr("cannot be read"));
}

}  // namespace longshort::server::session_seal_test

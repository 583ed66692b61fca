#include "server/handlers/archive_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace longshort::server::archive_format_test {

using testing::HasSubstr;

ExportedSession SomeSession() {
  ExportedSession session;
  session.origin = {.client = "alice", .fingerprint = "f00d", .precision = "bf16"};
  session.archive.tokens = {5, 0, 2147483647, 7};
  session.archive.cache_layout = "fake";
  session.archive.cached = {.begin = 1024, .position = 3, .contents = std::string(1000, 'k') + '\0' + "end"};
  return session;
}

std::string DataOf(const ExportedSession& session, size_t chunk = 1 << 20) {
  ArchiveWriter writer(session);
  std::string data;
  for (std::string next = writer.Next(chunk); !next.empty(); next = writer.Next(chunk)) {
    EXPECT_LE(next.size(), chunk);
    data += next;
  }
  EXPECT_EQ(static_cast<int64_t>(data.size()), writer.bytes());
  return data;
}

absl::StatusOr<ExportedSession> Read(const std::string& data, size_t chunk = 1 << 20) {
  ArchiveReader reader(static_cast<int64_t>(data.size()));
  for (size_t i = 0; i < data.size(); i += chunk) {
    const absl::Status status = reader.Append(std::string_view(data).substr(i, chunk));
    if (!status.ok()) return status;
  }
  return reader.Finish();
}

TEST(ArchiveFormat, ASessionComesBackHoweverItsDataWereCut) {
  const std::string data = DataOf(SomeSession());
  for (const size_t chunk : {1, 7, 8, 16, 17, 100, 5000}) {
    EXPECT_EQ(DataOf(SomeSession(), chunk), data);
    const auto session = Read(data, chunk);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(session->origin.client, "alice");
    EXPECT_EQ(session->origin.fingerprint, "f00d");
    EXPECT_EQ(session->origin.precision, "bf16");
    EXPECT_EQ(session->archive.tokens, (std::vector<int32_t>{5, 0, 2147483647, 7}));
    EXPECT_EQ(session->archive.cache_layout, "fake");
    EXPECT_EQ(session->archive.cached->begin, 1024);
    EXPECT_EQ(session->archive.cached->position, 3);
    EXPECT_EQ(session->archive.cached->contents, SomeSession().archive.cached->contents);
  }
}

TEST(ArchiveFormat, ASessionWithoutCacheComesBack) {
  ExportedSession session = SomeSession();
  session.archive.cached.reset();
  const auto read = Read(DataOf(session));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->archive.cached.has_value());
  EXPECT_EQ(read->archive.tokens.size(), 4U);
}

TEST(ArchiveFormat, IsAtMostMaxArchiveBytes) {
  ExportedSession session = SomeSession();
  session.origin.client = std::string(128, 'c');
  session.archive.tokens.assign(5000, 2147483647);
  const core::SessionSize size = {.tokens = 5000, .cache_bytes = 1004};
  EXPECT_LE(static_cast<int64_t>(DataOf(session).size()), MaxArchiveBytes(size));
  EXPECT_GT(static_cast<int64_t>(DataOf(session).size()), 5000 * 5);
}

TEST(ArchiveFormat, RejectsDataThatIsCutShort) {
  const std::string data = DataOf(SomeSession());
  for (size_t length = 0; length < data.size(); ++length) {
    ArchiveReader reader(static_cast<int64_t>(data.size()));
    ASSERT_TRUE(reader.Append(std::string_view(data).substr(0, length)).ok());
    EXPECT_EQ(reader.Finish().status().code(), absl::StatusCode::kDataLoss) << length;
  }
}

TEST(ArchiveFormat, TakesAtMostTheAnnouncedBytes) {
  const std::string data = DataOf(SomeSession());
  ArchiveReader reader(static_cast<int64_t>(data.size()) - 1);
  EXPECT_THAT(std::string(reader.Append(data).message()), HasSubstr("more than the"));
  EXPECT_EQ(reader.received_bytes(), 0);
}

TEST(ArchiveFormat, NamesWhatIsWrong) {
  std::string data = DataOf(SomeSession());
  const auto spoilt = [&](size_t place, char value) {
    std::string other = data;
    other[place] = value;
    const absl::Status status = Read(other).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  EXPECT_EQ(spoilt(7, '2'), "the data is not a session's archive");
  EXPECT_EQ(spoilt(15, '\x7f'), "the session's description is longer than the session's data");
  EXPECT_EQ(spoilt(15, '\xff'), "the session's description is longer than the session's data");
  EXPECT_EQ(spoilt(16, '\x0f'), "the session's description cannot be read");
  ExportedSession session = SomeSession();
  session.archive.cached.reset();
  EXPECT_EQ(Read(DataOf(session) + "more").status().message(), "the session has 4 bytes after its end");
}

}  // namespace longshort::server::archive_format_test

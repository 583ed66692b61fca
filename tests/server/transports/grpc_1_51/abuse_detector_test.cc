#include "server/transports/grpc_1_51/abuse_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort::server::abuse_detector_test {

using ::testing::Eq;
using ::testing::Optional;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr absl::Duration kLook = absl::Milliseconds(250);

// A connection that is polled four times a second.
class Watched {
 public:
  explicit Watched(const AbuseLimits& limits = {}) : limits_(limits) {}

  std::optional<AbuseKind> Look() {
    time_.now += kLook;
    time_.cpu += kLook * cpu_share;
    std::optional<ConnectionCalls> known;
    if (conduct_.WantsCalls(bytes) && known_to_grpc) known = calls;
    return conduct_.Judge(time_, bytes, known, limits_);
  }
  // The first offence within so many looks, each after `step`.
  template <typename Step>
  std::optional<AbuseKind> Look(int looks, const Step& step) {
    for (int i = 0; i < looks; ++i) {
      step();
      if (const std::optional<AbuseKind> why = Look(); why.has_value()) return why;
    }
    return std::nullopt;
  }

  ConnectionBytes bytes;
  ConnectionCalls calls;
  bool known_to_grpc = true;
  double cpu_share = 1;  // of one CPU, that the server gets

 private:
  const AbuseLimits limits_;
  PollTime time_ = {.now = absl::UnixEpoch(), .cpu = absl::ZeroDuration()};
  AbuseDetector conduct_;
};

TEST(AbuseDetector, CallsInMemoryAreBounded) {
  Watched connection;
  const auto open_a_thousand = [&] {
    connection.calls.open += 1000;
    connection.bytes.received += 150'000;
  };
  EXPECT_EQ(connection.Look(2, open_a_thousand), std::nullopt) << "2,000 of 2,048";
  EXPECT_THAT(connection.Look(1, open_a_thousand), Optional(AbuseKind::kCalls));
}

TEST(AbuseDetector, CallsThatHaveMessagesCountToo) {
  Watched connection;
  connection.calls = {.open = 4097, .messages = 4097};
  connection.bytes.received = kMiB;
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kCalls));
}

// Of calls that are reset at once, few are in memory when the guard looks.
TEST(AbuseDetector, CallsWithoutAMessageAreBounded) {
  Watched connection;
  const auto reset_a_thousand = [&] {
    connection.calls.begun += 1000;
    connection.bytes.received += 50'000;
  };
  EXPECT_EQ(connection.Look(4, reset_a_thousand), std::nullopt) << "4,000 of 4,096";
  EXPECT_THAT(connection.Look(1, reset_a_thousand), Optional(AbuseKind::kCalls));

  Watched busy;
  const std::optional<AbuseKind> why = busy.Look(100, [&] {
    busy.calls.begun += 1000;
    busy.calls.messages += 1;
    busy.bytes.received += 50'000;
  });
  EXPECT_EQ(why, std::nullopt);
}

TEST(AbuseDetector, MuchWithoutAMessageEndsIt) {
  Watched connection;
  connection.calls.open = 1;
  // 64 MiB, the message of one open call, and half of what was sent.
  const std::optional<AbuseKind> why = connection.Look(14, [&] {
    connection.bytes.received += 5 * kMiB;
    connection.bytes.taken += 100;
  });
  EXPECT_EQ(why, std::nullopt) << "70 of 72 MiB";
  connection.bytes.received += 3 * kMiB;
  connection.bytes.taken += 100;
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kBytes));
}

TEST(AbuseDetector, AMessageBeginsAgain) {
  Watched connection;
  const std::optional<AbuseKind> why = connection.Look(100, [&] {
    connection.calls.messages += 1;
    connection.bytes.received += 50 * kMiB;
  });
  EXPECT_EQ(why, std::nullopt);
}

TEST(AbuseDetector, EachOpenCallMayHaveAMessageOnItsWay) {
  Watched connection({.message_bytes = 100 * kMiB, .messages_bytes = 1000 * kMiB});
  connection.calls.open = 4;
  const auto upload = [&] {
    connection.bytes.received += 10 * kMiB;
    connection.bytes.taken += 13;  // a window update
  };
  EXPECT_EQ(connection.Look(46, upload), std::nullopt);
  EXPECT_THAT(connection.Look(1, upload), Optional(AbuseKind::kBytes));
}

// Who opens calls only to be allowed more must not be.
TEST(AbuseDetector, MessagesOnTheirWayAreBoundedTogether) {
  Watched connection({.message_bytes = 100 * kMiB, .messages_bytes = 200 * kMiB});
  connection.calls.open = 2000;
  const auto send = [&] {
    connection.bytes.received += 10 * kMiB;
    connection.bytes.taken += 9;
  };
  EXPECT_EQ(connection.Look(26, send), std::nullopt);
  EXPECT_THAT(connection.Look(1, send), Optional(AbuseKind::kBytes));
}

// HTTP/2's windows end: a client that uploads hears of the server meanwhile.
TEST(AbuseDetector, FewBytesWithoutAnAnswerEndTheConnection) {
  Watched connection({.message_bytes = 1024 * kMiB, .messages_bytes = 4096 * kMiB});
  connection.calls.open = 1;
  const auto send = [&] { connection.bytes.received += kMiB / 4; };
  EXPECT_EQ(connection.Look(5, send), std::nullopt) << "256 KiB, and the window of a call";
  EXPECT_THAT(connection.Look(1, send), Optional(AbuseKind::kBytes));
}

TEST(AbuseDetector, EachOpenCallMayFillItsWindow) {
  Watched connection;
  connection.calls.open = 32;
  const auto send = [&] { connection.bytes.received += 4 * kMiB; };
  EXPECT_EQ(connection.Look(8, send), std::nullopt) << "256 KiB, and 34 MiB of windows";
  EXPECT_THAT(connection.Look(1, send), Optional(AbuseKind::kBytes));
}

TEST(AbuseDetector, ACallThatEndedMayHaveFilledItsWindow) {
  Watched connection;
  connection.calls = {.begun = 1, .open = 1};
  connection.bytes = {.received = 64 * 1024, .taken = 13};
  EXPECT_EQ(connection.Look(), std::nullopt);
  connection.bytes.received += 900'000;
  connection.calls.open = 0;  // its deadline has passed
  EXPECT_EQ(connection.Look(), std::nullopt);
  connection.bytes.received += 500'000;
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kBytes));
}

TEST(AbuseDetector, BytesThatAreNotReadYetMayBeginCalls) {
  Watched connection;
  connection.bytes = {.received = kMiB, .unread = kMiB - 1000};
  EXPECT_EQ(connection.Look(), std::nullopt);
  connection.bytes.unread = 0;
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kBytes));
}

TEST(AbuseDetector, WindowUpdatesOfAReaderAreNoOffence) {
  Watched connection;
  connection.calls = {.open = 1, .messages = 1};
  const std::optional<AbuseKind> why = connection.Look(1000, [&] {
    connection.bytes.taken += kMiB;
    connection.bytes.received += kMiB * 26 / 64;  // two for every message of 50 bytes
  });
  EXPECT_EQ(why, std::nullopt);
}

TEST(AbuseDetector, BytesThatWaitWhileNothingComesOfOthersEndIt) {
  Watched connection;
  connection.calls.open = 1;
  connection.bytes.unread = 100'000;
  const auto send = [&] { connection.bytes.received += 100'000; };
  EXPECT_EQ(connection.Look(8, send), std::nullopt) << "since its first look less than two seconds";
  EXPECT_THAT(connection.Look(1, send), Optional(AbuseKind::kStalled));
}

TEST(AbuseDetector, AnUploadThatIsReadSlowlyIsNotStalled) {
  Watched connection;
  connection.calls.open = 1;
  connection.bytes.unread = 100'000;
  int look = 0;
  const auto upload = [&] {
    connection.bytes.received += 100'000;
    if (++look % 7 == 0) connection.bytes.taken += 13;
  };
  EXPECT_EQ(connection.Look(100, upload), std::nullopt);
}

// Other programs have the machine: a large message takes a minute, and its window is updated every five seconds.
TEST(AbuseDetector, AnUploadToABusyMachineIsNotStalled) {
  Watched connection;
  connection.cpu_share = 0.1;
  connection.calls.open = 1;
  connection.bytes.unread = 100'000;
  int look = 0;
  const auto upload = [&] {
    connection.bytes.received += 50'000;
    if (++look % 20 == 0) connection.bytes.taken += 13;
  };
  EXPECT_EQ(connection.Look(240, upload), std::nullopt);
}

TEST(AbuseDetector, AnswersThatWaitForAClientEndIt) {
  Watched connection;
  connection.calls = {.begun = 1, .open = 1};
  connection.bytes = {.received = 200'000, .unread = 100'000, .taken = 0, .unsent = 100'000};
  EXPECT_EQ(connection.Look(40, [] {}), std::nullopt) << "less than ten seconds";
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kStalled));
}

TEST(AbuseDetector, ASlowReaderThatTakesSomethingIsNotStalled) {
  Watched connection;
  connection.calls = {.begun = 1, .open = 1};
  connection.bytes = {.received = 200'000, .unread = 100'000, .taken = 0, .unsent = 100'000};
  int look = 0;
  const auto take = [&] {
    if (++look % 30 == 0) connection.bytes.taken += 1000;
  };
  EXPECT_EQ(connection.Look(1000, take), std::nullopt);
}

TEST(AbuseDetector, ManyBytesWithoutACallEndIt) {
  Watched connection;
  const auto ping = [&] {
    connection.bytes.received += kMiB / 32;
    connection.bytes.taken += kMiB / 32;
  };
  EXPECT_EQ(connection.Look(4, ping), std::nullopt);
  EXPECT_THAT(connection.Look(1, ping), Optional(AbuseKind::kPings));
}

// Between two large messages, the headers of the second wait with its first bytes.
TEST(AbuseDetector, UnreadBytesMayBeginACall) {
  Watched connection;
  connection.bytes = {.received = 2 * kMiB, .unread = 2 * kMiB, .taken = 100};
  EXPECT_EQ(connection.Look(), std::nullopt);
  connection.bytes.unread = 2 * kMiB - kMiB / 8 - 1;
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kPings));
}

TEST(AbuseDetector, CallsThatEndBetweenTwoLooksCount) {
  Watched connection;
  const auto refused_upload = [&] {
    connection.calls.begun += 1;
    connection.bytes.received += kMiB / 2;
    connection.bytes.taken += kMiB;
  };
  EXPECT_EQ(connection.Look(100, refused_upload), std::nullopt);
}

TEST(AbuseDetector, AFewBytesThatWaitAreNoOffence) {
  Watched connection;
  connection.calls.open = 1;
  connection.bytes = {.received = 200'000, .unread = 200'000, .taken = 0};
  EXPECT_EQ(connection.Look(100, [] {}), std::nullopt) << "a server that has no time for its clients";
}

TEST(AbuseDetector, ManyUnreadBytesAreNoOffence) {
  Watched connection;
  connection.calls.open = 1;
  const auto send = [&] { connection.bytes.received = connection.bytes.unread += 10'000; };
  EXPECT_EQ(connection.Look(100, send), std::nullopt) << "a megabyte, while others keep gRPC's threads";
  connection.bytes.unread -= 200'000;
  EXPECT_EQ(connection.Look(), std::nullopt) << "less than 256 KiB were read";
  connection.bytes.unread -= 100'000;
  EXPECT_THAT(connection.Look(), Optional(AbuseKind::kStalled)) << "and nothing came of them";
}

TEST(AbuseDetector, UnknownFramesAreBoundedToo) {
  Watched connection({.messages_bytes = 256 * kMiB});
  connection.known_to_grpc = false;
  const auto send = [&] { connection.bytes.received += 32 * kMiB; };
  EXPECT_EQ(connection.Look(8, send), std::nullopt);
  EXPECT_THAT(connection.Look(1, send), Optional(AbuseKind::kBytes));
}

}  // namespace longshort::server::abuse_detector_test

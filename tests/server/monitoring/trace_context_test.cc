#include "server/monitoring/trace_context.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/random_number.h"

namespace longshort::server::trace_context_test {

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSpanId[] = "00f067aa0ba902b7";
const std::string kParent = absl::StrCat("00-", kTraceId, "-", kSpanId, "-01");

std::string StateOf(const std::string& tracestate) { return ParseTraceContext(kParent, tracestate)->state; }

TEST(TraceContext, OfVersion0IsRead) {
  const auto context = ParseTraceContext(kParent, "");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id.ToHex(), kTraceId);
  EXPECT_EQ(context->span_id.ToHex(), kSpanId);
  EXPECT_EQ(context->trace_id.ToBytes(),
            std::string("\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36", 16));
  EXPECT_EQ(context->span_id.ToBytes(), std::string("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8));
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(context->random);
}

TEST(TraceContext, OfFlagsTwoAreKnown) {
  const std::string begin = absl::StrCat("00-", kTraceId, "-", kSpanId, "-");
  EXPECT_FALSE(ParseTraceContext(begin + "00", "")->sampled);
  EXPECT_FALSE(ParseTraceContext(begin + "fe", "")->sampled);
  EXPECT_TRUE(ParseTraceContext(begin + "ff", "")->sampled);
  EXPECT_TRUE(ParseTraceContext(begin + "02", "")->random);
  EXPECT_FALSE(ParseTraceContext(begin + "fd", "")->random);
}

TEST(TraceContext, OfALaterVersionMayBeLonger) {
  for (const char* version : {"01", "cc", "fe"}) {
    const std::string parent = absl::StrCat(version, "-", kTraceId, "-", kSpanId, "-01");
    EXPECT_TRUE(ParseTraceContext(parent, "")->sampled);
    EXPECT_TRUE(ParseTraceContext(parent + "-what the future will be like", "")->sampled);
    EXPECT_TRUE(ParseTraceContext(parent + "-", "")->sampled);
    EXPECT_FALSE(ParseTraceContext(parent + ".what", "").has_value());
    EXPECT_FALSE(ParseTraceContext(parent + "0", "").has_value());
  }
}

TEST(TraceContext, ThatIsMalformedIsNone) {
  const std::string span = kSpanId;
  const std::string trace = kTraceId;
  for (const std::string& parent : {std::string(),
                                    std::string("00"),
                                    std::string("-"),
                                    "00-" + trace,
                                    "00-" + trace + "-" + span,
                                    "00-" + trace + "-" + span + "-",
                                    "00-" + trace + "-" + span + "-1",
                                    "00-" + trace + "-" + span + "-01-",
                                    "00-" + trace + "-" + span + "-01-00",
                                    "00-" + trace + "-" + span + "-012",
                                    "ff-" + trace + "-" + span + "-01",
                                    "0-" + trace + "-" + span + "-01",
                                    "000-" + trace + "-" + span + "-01",
                                    "0g-" + trace + "-" + span + "-01",
                                    "00_" + trace + "-" + span + "-01",
                                    "00-" + trace + "_" + span + "-01",
                                    "00-" + trace + "-" + span + "_01",
                                    "00-" + trace.substr(1) + "-" + span + "-01",
                                    "00-0" + trace + "-" + span + "-01",
                                    "00-" + trace + "-" + span.substr(1) + "-01",
                                    "00-" + trace + "-0" + span + "-01",
                                    "00-" + std::string(32, '0') + "-" + span + "-01",
                                    "00-" + trace + "-" + std::string(16, '0') + "-01",
                                    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01",
                                    "00-" + trace + "-00F067AA0BA902B7-01",
                                    "00-" + trace + "-" + span + "-0x",
                                    "00-" + trace.substr(0, 31) + ".-" + span + "-01",
                                    "00-" + trace + "-" + span.substr(0, 15) + ".-01",
                                    kParent + "," + kParent,
                                    std::string("00-\0", 4) + trace.substr(1) + "-" + span + "-01"}) {
    EXPECT_FALSE(ParseTraceContext(parent, "").has_value()) << parent;
  }
}

TEST(TraceContext, FieldsThatAreNotThereAreNotMadeOfThoseBehindThem) {
  for (const char* const parent : {"00-00f067aa0ba902b7-01", "00-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-01"}) {
    EXPECT_FALSE(ParseTraceContext(parent, "").has_value()) << parent;
  }
}

TEST(TraceContext, SpacesAroundItDoNotMatter) { EXPECT_TRUE(ParseTraceContext(" \t" + kParent + " ", "").has_value()); }

TEST(TraceContext, EveryFlippedByteIsReadOrRefusedByTheRules) {
  for (int round = 0; round < 20000; ++round) {
    std::string parent = kParent;
    const size_t place = RandomNumber() % parent.size();
    parent[place] = static_cast<char>(RandomNumber() % 256);
    const auto context = ParseTraceContext(parent, "");
    const bool dash = place == 2 || place == 35 || place == 52;
    const char now = parent[place];
    const bool hex = (now >= '0' && now <= '9') || (now >= 'a' && now <= 'f');
    // One byte makes no version ff out of 00, and no id of zeros out of these.
    EXPECT_EQ(context.has_value(), dash ? now == '-' : hex) << parent;
    if (context.has_value()) {
      EXPECT_EQ(context->trace_id.ToHex(), parent.substr(3, 32));
      EXPECT_EQ(context->span_id.ToHex(), parent.substr(36, 16));
    }
  }
}

TEST(TraceContext, AStateIsPassedOnAsItIs) {
  for (const std::string& state :
       {std::string("a=1"), std::string("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"), std::string("a=1 , b=2\t,,c=3"),
        std::string("0a/b*c-d_e=x:y;z"), std::string("tenant@system=~! "), std::string(256, 'k') + "=v",
        "k=" + std::string(256, 'v'), std::string(241, 't') + "@" + std::string(14, 's') + "=1"}) {
    EXPECT_EQ(StateOf(state), state.substr(0, state.find_last_not_of(' ') + 1));
  }
}

TEST(TraceContext, AStateThatIsNotValidIsLeftOutAndTheRestKept) {
  for (const std::string& state :
       {std::string("a"), std::string("=1"), std::string("a="), std::string("A=1"), std::string("a b=1"),
        std::string("a =1"), std::string("a=1=2"), std::string("a=1,a=2"), std::string("_a=1"), std::string("a@=1"),
        std::string("@a=1"), std::string("a@b@c=1"), std::string("a=\x7f"), std::string("a=\xc3\xa9"),
        std::string(257, 'k') + "=v", "k=" + std::string(257, 'v'), std::string(242, 't') + "@s=1",
        "t@" + std::string(15, 's') + "=1"}) {
    EXPECT_EQ(StateOf(state), "") << state;
  }
}

TEST(TraceContext, AStateHasAtMost32Members) {
  std::string state = "k0=v";
  for (int i = 1; i < 32; ++i) absl::StrAppend(&state, ",k", i, "=v");
  EXPECT_EQ(StateOf(state), state);
  EXPECT_EQ(StateOf(state + ",k32=v"), "");
}

TEST(TraceContext, AStateHasAtMost512Bytes) {
  const std::string state = absl::StrCat("a=", std::string(253, 'v'), ",b=", std::string(254, 'v'));
  ASSERT_EQ(state.size(), 512);
  EXPECT_EQ(StateOf(state), state);
  EXPECT_EQ(StateOf(state + "v"), "");
}

}  // namespace longshort::server::trace_context_test

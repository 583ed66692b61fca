#include "tools/load/summary.h"

#include "gtest/gtest.h"

namespace longshort::load::summary_test {

using grpc::StatusCode;

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

CallOutcome Answer(double planned, double ended) {
  CallOutcome outcome;
  outcome.planned = At(planned);
  outcome.sent = At(planned);
  outcome.ended = At(ended);
  return outcome;
}

CallOutcome WithCode(StatusCode code, double planned, double ended, const std::string& error = "") {
  CallOutcome outcome = Answer(planned, ended);
  outcome.code = code;
  outcome.error = error;
  return outcome;
}

TEST(Summarise, EveryCallOfTheWindowIsCountedOnce) {
  std::vector<CallOutcome> outcomes = {Answer(0.5, 1.5),  // of the warm-up
                                       Answer(1, 2),
                                       WithCode(StatusCode::RESOURCE_EXHAUSTED, 2, 2.1),
                                       WithCode(StatusCode::DEADLINE_EXCEEDED, 3, 4, "too late"),
                                       WithCode(StatusCode::CANCELLED, 4, 20),
                                       WithCode(StatusCode::CANCELLED, 5, 6),
                                       Answer(10.9, 12)};  // planned in time, answered in the grace
  outcomes[4].cut_off = true;
  const Summary summary = Summarise(outcomes, At(1), At(11), {});
  EXPECT_EQ(summary.sent, 6);
  EXPECT_EQ(summary.answered, 2);
  EXPECT_EQ(summary.refused, 1);
  EXPECT_EQ(summary.failed, 2);
  EXPECT_EQ(summary.first_failure, "too late");
  EXPECT_EQ(summary.cut_off, 1);
  EXPECT_EQ(summary.total.at(StatusCode::OK).Max(), At(12) - At(10.9));
  EXPECT_EQ(summary.total.at(StatusCode::CANCELLED).count(), 1);
  // What arrived within the ten seconds, whenever it was sent: the answers at 1.5 and 2.
  EXPECT_DOUBLE_EQ(summary.answers_per_second, 0.2);
}

TEST(Summarise, ALateClientCountsAgainstTheLatency) {
  CallOutcome late = Answer(1, 3);
  late.sent = At(2.5);
  const Summary summary = Summarise({late}, At(0), At(10), {});
  EXPECT_EQ(summary.total.at(StatusCode::OK).Max(), At(2));
  EXPECT_EQ(summary.send_delay.Max(), At(1.5));
}

//  planned  first token      window ends
//     1 ------- 3 --- 4 (2 tokens) | 12      the last token comes too late to count
TEST(Summarise, TokensCountWhenTheyArrive) {
  CallOutcome stream = Answer(1, 12);
  stream.arrivals = {{At(3), 1}, {At(4), 2}, {At(12), 1}};
  const Summary summary = Summarise({stream}, At(0), At(10), {});
  EXPECT_EQ(summary.first_token.Max(), At(2));
  EXPECT_EQ(summary.inter_token.count(), 1);
  EXPECT_EQ(summary.inter_token.Max(), At(1));
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 0.3);
  EXPECT_EQ(summary.timeline.tokens[3], 1);
  EXPECT_EQ(summary.timeline.tokens[4], 2);
}

TEST(Summarise, GoodputCountsAnswersThatKeepToEveryPart) {
  CallOutcome stream = Answer(0, 2);
  stream.arrivals = {{At(0.5), 1}, {At(1), 3}, {At(2), 2}};  // five tokens in 1.5 s after the first
  EXPECT_TRUE(Meets(stream, {}));
  EXPECT_TRUE(Meets(stream, {.first_token = At(0.5), .total = At(2)}));
  EXPECT_FALSE(Meets(stream, {.first_token = At(0.4)}));
  EXPECT_FALSE(Meets(stream, {.total = At(1.9)}));
  EXPECT_FALSE(Meets(WithCode(StatusCode::UNAVAILABLE, 0, 0.1), {}));
  const Summary summary = Summarise({stream, stream, Answer(1, 1.1)}, At(0), At(4), {.total = At(1)});
  EXPECT_EQ(summary.within_objective, 1);
  EXPECT_DOUBLE_EQ(summary.goodput_per_second, 0.25);
}

TEST(Summarise, LongRunsHaveATimelineOfAtMost120Slices) {
  const Summary summary = Summarise({Answer(0, 3599.9)}, At(0), At(3600), {});
  EXPECT_EQ(summary.timeline.slice, At(30));
  ASSERT_EQ(summary.timeline.answered.size(), 120);
  EXPECT_EQ(summary.timeline.answered.back(), 1);
}

TEST(Summarise, AWindowWithoutTimeHasNoRates) {
  const Summary summary = Summarise({Answer(0, 1)}, At(2), At(1), {});
  EXPECT_EQ(summary.sent, 0);
  EXPECT_EQ(summary.answers_per_second, 0);
}

}  // namespace longshort::load::summary_test

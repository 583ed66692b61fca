#include "tests/determinism/mix.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/end_signal.h"

namespace longshort {
namespace {

constexpr int kClients = 24;
// A request may be cancelled once, and meet failures until it is ended.
constexpr int kMaxTries = 8;
constexpr double kCancelled = 0.2;
constexpr int64_t kNever = -1;
// How often a session goes to the engine that serves its model now, between two calls.
constexpr double kMoved = 0.4;

bool EndedEarly(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled || status.code() == absl::StatusCode::kInternal;
}

class LogitsListener final : public core::ClassificationListener {
 public:
  void OnFinished(absl::StatusOr<core::ItemResult> result) override {
    scores = std::move(result);
    end.Notify();
  }

  absl::StatusOr<core::ItemResult> scores = absl::UnknownError("not heard yet");
  core::EndSignal end;
};

}  // namespace

void Mix::Run(const std::vector<Work>& work, uint64_t seed) {
  std::atomic<size_t> next = 0;
  const auto client = [&](uint64_t number) {
    Random random(seed + number);
    for (size_t i = next++; i < work.size(); i = next++) {
      if (const auto* conversation = std::get_if<const ExpectedConversation*>(&work[i])) {
        RunConversation(**conversation, absl::StrCat("session ", i), random);
      } else {
        RunClassification(*std::get<const ExpectedClassification*>(work[i]), random);
      }
    }
  };
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i) clients.emplace_back(client, i);
  for (std::thread& thread : clients) thread.join();
}

void Mix::RunConversation(const ExpectedConversation& expected, const std::string& session, Random& random) {
  std::shared_ptr<core::ServedModel> served = models_.Find(expected.conversation.model);
  for (size_t call = 0; call < expected.conversation.calls.size(); ++call) {
    if (call > 0 && Chance(random, kMoved)) {
      const std::shared_ptr<core::ServedModel> now = models_.Find(expected.conversation.model);
      MoveSession(*served->language_model()->engine, *now->language_model()->engine, session);
      served = now;
    }
    if (!RunCall(*served->language_model()->engine, expected, call, session, random))
      return;  // what follows has another history
    happenings_.session_calls += call > 0;
  }
}

void Mix::MoveSession(core::LanguageModelEngine& from, core::LanguageModelEngine& to, const std::string& session) {
  const core::SessionKey key{.client = "", .id = session};
  absl::StatusOr<core::SessionArchive> archive;
  core::EndSignal exported, imported;
  from.ExportSession(key, [&](absl::StatusOr<core::SessionArchive> result) {
    archive = std::move(result);
    exported.Notify();
  });
  ASSERT_TRUE(exported.Wait()) << "a session was not exported within a minute";
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_TRUE(from.sessions().Close(key, {}).ok());
  to.ImportSession(key, *std::move(archive), [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    imported.Notify();
  });
  ASSERT_TRUE(imported.Wait()) << "a session was not imported within a minute";
  ++happenings_.moved_sessions;
}

bool Mix::RunCall(core::LanguageModelEngine& engine, const ExpectedConversation& expected, size_t call,
                  const std::string& session, Random& random) {
  int64_t cancel_after = Chance(random, kCancelled) ? Below(random, 20) : kNever;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    bool same_tokens = false;
    if (TryCall(engine, expected, call, session, cancel_after, same_tokens)) return same_tokens;
    cancel_after = kNever;
  }
  ADD_FAILURE() << "a call was not answered in " << kMaxTries << " tries";
  return false;
}

bool Mix::TryCall(core::LanguageModelEngine& engine, const ExpectedConversation& expected, size_t call,
                  const std::string& session, int64_t cancel_after, bool& same_tokens) {
  const Call& asked = expected.conversation.calls[call];
  core::RequestContext context;
  context.id = session;
  std::optional<core::SessionReference> reference;
  if (expected.conversation.in_session) reference = {.id = session, .must_exist = call > 0};
  if (cancel_after == 0) *context.cancelled = true;
  int64_t deltas = 0;
  const auto on_delta = [&] {
    if (++deltas == cancel_after) *context.cancelled = true;
  };
  disturber_.Watch(context.paused);
  const Answer answer = Ask(engine, asked, context, reference, on_delta);
  disturber_.Forget(context.paused);

  const bool whole = answer.status.ok();
  EXPECT_TRUE(whole || EndedEarly(answer.status)) << answer.status;
  happenings_.cancelled += answer.status.code() == absl::StatusCode::kCancelled;
  const Answer& alone = expected.answers[call];
  const Difference difference = Compare(alone, answer);
  EXPECT_LE(difference.largest, kTolerance) << expected.conversation.model << ", " << KindOf(asked);
  if (difference.first_other_token.has_value()) {
    EXPECT_LE(MarginAt(expected, call, *difference.first_other_token), kMargin)
        << expected.conversation.model << ", " << KindOf(asked) << ", token " << *difference.first_other_token;
  }
  ledger_.Add(KindOf(asked), difference, whole);
  same_tokens = !difference.first_other_token.has_value();
  return whole;
}

void Mix::RunClassification(const ExpectedClassification& expected, Random& random) {
  const std::shared_ptr<core::ServedModel> served = models_.Find(expected.model);
  core::ClassifierEngine& engine = *served->classifier()->engine;
  std::vector<size_t> waiting;
  for (size_t item = 0; item < expected.items.size(); ++item) waiting.push_back(item);
  bool cancel = Chance(random, kCancelled);
  for (int tries = 0; tries < kMaxTries && !waiting.empty(); ++tries) {
    const core::RequestContext context;
    std::vector<std::shared_ptr<LogitsListener>> listeners;
    for (const size_t item : waiting) {
      listeners.push_back(std::make_shared<LogitsListener>());
      const absl::Status taken = engine.Classify({.context = context, .item = expected.items[item]}, listeners.back());
      ASSERT_TRUE(taken.ok()) << taken;
    }
    if (std::exchange(cancel, false)) *context.cancelled = true;
    std::vector<size_t> again;
    for (size_t i = 0; i < waiting.size(); ++i) {
      ASSERT_TRUE(listeners[i]->end.Wait()) << "an item was not classified within a minute";
      const absl::StatusOr<core::ItemResult>& scores = listeners[i]->scores;
      if (!scores.ok()) {
        EXPECT_TRUE(EndedEarly(scores.status())) << scores.status();
        happenings_.cancelled += scores.status().code() == absl::StatusCode::kCancelled;
        again.push_back(waiting[i]);
        continue;
      }
      const Difference difference = CompareLogits(expected.logits[waiting[i]], scores->row);
      EXPECT_LE(difference.largest, kTolerance) << expected.model;
      ledger_.Add(absl::StrCat("classify, ", expected.model), difference, true);
    }
    waiting = std::move(again);
  }
  EXPECT_TRUE(waiting.empty()) << waiting.size() << " items were not classified in " << kMaxTries << " tries";
}

}  // namespace longshort

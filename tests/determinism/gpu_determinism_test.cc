// A stream on an emulated GPU says in company what it says alone, whichever worker and graphs its steps go through.

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "core/cache/cache_grid.h"
#include "core/generation/continuous_batching_engine.h"
#include "gtest/gtest.h"
#include "tests/determinism/answer.h"
#include "tests/determinism/mix.h"
#include "tests/determinism/random_choice.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::gpu_determinism_test {

constexpr int64_t kSessions = 8;

std::vector<int32_t> RandomTokens(Random& random, int64_t count, const models::LanguageModelInfo& info) {
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(Below(random, info.vocabulary_size));
  return tokens;
}

// Every third one scores; every other generation is seeded.
Call RandomCall(Random& random, int64_t number, const models::LanguageModelInfo& info) {
  if (number % 3 == 2) {
    core::ScoringRequest request;
    request.tokens = RandomTokens(random, Between(random, 2, 60), info);
    request.log_probabilities = true;
    return request;
  }
  core::GenerationRequest request;
  request.prompt = RandomTokens(random, Between(random, 1, 60), info);
  request.max_tokens = Between(random, 5, 15);
  request.sampling.temperature = number % 2 == 0 ? 0 : 1;
  request.sampling.seed = random();
  request.log_probabilities = true;
  return request;
}

// Two calls of a session, the second behind the first, and their answers alone.
struct Dialogue {
  std::vector<Call> calls;
  std::vector<Answer> alone;
};

TEST(GpuDeterminism, SessionsInCompanyAreAnsweredAsAlone) {
  const models::TestedBackend backend = models::TestedBackends().back();
  if (backend.device.kind != models::DeviceKind::kEmulated) GTEST_SKIP() << "the emulator is not for this processor";
  const models::LanguageModelWeights weights = models::RandomWeightsOn(backend, models::QuickConfig(), 15);
  const models::CachePages pages = core::PagesForStreams(weights.info(), 4);
  Random random(3);
  std::vector<Dialogue> dialogues(kSessions);
  int64_t number = 0;
  for (Dialogue& dialogue : dialogues) {
    std::vector<int32_t> history;
    for (int call = 0; call < 2; ++call) {
      dialogue.calls.push_back(RandomCall(random, number++, weights.info()));
      const Call& asked = dialogue.calls.back();
      dialogue.alone.push_back(AskAlone(weights, asked, history, backend.device));
      history.insert(history.end(), GivenTokens(asked).begin(), GivenTokens(asked).end());
      for (const core::GeneratedToken& token : dialogue.alone.back().generated) history.push_back(token.token);
    }
  }

  const RealClock clock;
  auto created = core::ContinuousBatchingEngine::Create(
      weights, nullptr, nullptr, clock,
      {.step_loop = {.max_streams = kSessions, .cache_bytes = 2 * core::Bytes(pages, weights.info().page_bytes)},
       .workers = {backend.device, backend.device}});
  ASSERT_TRUE(created.ok()) << created.status();
  core::LanguageModelEngine& engine = **created;
  std::vector<std::thread> clients;
  std::vector<std::vector<Answer>> mixed(kSessions);
  for (int64_t i = 0; i < kSessions; ++i) {
    clients.emplace_back([&, i] {
      for (size_t call = 0; call < 2; ++call) {
        const core::SessionReference session = {.id = absl::StrCat("session ", i), .must_exist = call > 0};
        mixed[i].push_back(Ask(engine, dialogues[i].calls[call], {}, session));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (int64_t i = 0; i < kSessions; ++i) {
    for (size_t call = 0; call < 2; ++call) {
      const Answer& answer = mixed[i][call];
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      const Difference difference = Compare(dialogues[i].alone[call], answer);
      EXPECT_FALSE(difference.first_other_token.has_value()) << "session " << i << ", call " << call;
      EXPECT_LE(difference.largest, kTolerance) << "session " << i << ", call " << call;
    }
  }
}

}  // namespace longshort::gpu_determinism_test

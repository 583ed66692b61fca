// A result depends on the weights and the tokens only: requests in a mix with everything that can happen to them are
// answered as each is alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/determinism/accompanied_model.h"
#include "tests/determinism/library_bits.h"
#include "tests/determinism/mix.h"

namespace longshort::determinism_test {

// Of each model. The sanitizers make everything several times slower; so few still meet everything once.
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kConversations = 20;
#else
constexpr int64_t kConversations = 50;
#endif

int64_t Conversations() {
  const char* const set = std::getenv("LONGSHORT_DETERMINISM_CONVERSATIONS");
  return set == nullptr ? kConversations : std::max(1, std::atoi(set));
}

// Models, and requests with what each is answered alone.
struct Requests {
  Requests(std::vector<TestedLanguageModel> of_languages, std::vector<TestedClassifier> of_items)
      : language_models(std::move(of_languages)), classifiers(std::move(of_items)) {
    uint64_t seed = 100;
    for (const TestedLanguageModel& model : language_models) {
      for (auto& expected : RunAlone(model, Conversations(), ++seed)) conversations.push_back(std::move(expected));
    }
    for (const TestedClassifier& model : classifiers) {
      for (auto& expected : RunAlone(model, Conversations(), ++seed)) classifications.push_back(std::move(expected));
    }
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& model : language_models) names.push_back(model.name);
    for (const auto& model : classifiers) names.push_back(model.name);
    return names;
  }
  // All, in an order of its own for each seed.
  std::vector<Mix::Work> Shuffled(uint64_t seed) const {
    std::vector<Mix::Work> work;
    for (const ExpectedConversation& expected : conversations) work.emplace_back(&expected);
    for (const ExpectedClassification& expected : classifications) work.emplace_back(&expected);
    Random random(seed);
    for (size_t i = work.size(); i > 1; --i) std::swap(work[i - 1], work[Below(random, static_cast<int64_t>(i))]);
    return work;
  }

  std::vector<TestedLanguageModel> language_models;
  std::vector<TestedClassifier> classifiers;
  std::vector<ExpectedConversation> conversations;
  std::vector<ExpectedClassification> classifications;
};

// Runs them all side by side on workers of so many threads, and says what came of it.
Ledger::Line RunMixed(const char* what, const Requests& requests, int threads) {
  Happenings happenings;
  Ledger ledger;
  {
    SwappedModels models(requests.language_models, requests.classifiers, threads, happenings);
    Disturber disturber(models, requests.Names(), 7, happenings);
    Mix(models, disturber, happenings, ledger).Run(requests.Shuffled(8), 1000);
  }
  std::printf("%s, workers of %d thread%s\n%s", what, threads, threads == 1 ? "" : "s", ledger.Text().c_str());
  for (const auto& [happening, count] : happenings.List()) {
    if (happening == kSharedBatches && requests.classifiers.empty()) continue;
    std::printf("%10lld %s\n", static_cast<long long>(count), happening.c_str());
    EXPECT_GT(count, 0) << "nothing was seen of: " << happening;
  }
  EXPECT_LE(ledger.Sum().largest, kTolerance);
  return ledger.Sum();
}

TEST(Determinism, RequestsInAMixAreAnsweredAsEachIsAlone) {
  const Requests requests(TestedLanguageModels(), TestedClassifiers());
  for (const int threads : {1, 2}) RunMixed("models as they are served", requests, threads);
}

// Caches, attention, sessions, recomputation: nothing but the library's products of few rows changes a bit.
TEST(Determinism, WithEnoughRowsInEveryMatrixProductEveryBitIsTheSame) {
  std::vector<TestedLanguageModel> accompanied;
  for (TestedLanguageModel& tested : TestedLanguageModels()) {
    if (tested.name == "wide") continue;  // its company would take most of the test's time
    accompanied.push_back({.name = tested.name, .weights = WithCompany(std::move(tested.weights))});
  }
  const Requests requests(std::move(accompanied), {});
  for (const int threads : {1, 2}) {
    const Ledger::Line all = RunMixed("at least 16 rows in every product", requests, threads);
    if (EnoughRowsKeepTheirBits(threads)) {
      EXPECT_EQ(all.identical, all.cases);
    } else {
      std::printf("products of 16 rows and more do not keep their bits on this machine: so these cannot either\n");
    }
  }
}

// What breaks the bits of the rest. What is measured is the library's; that it stays within the tolerance is claimed.
TEST(Determinism, TheLibraryRoundsRowsDifferentlyByTheirNumber) {
  std::printf("rows that have the bits of a large product on one thread, by the rows of a product\n         ");
  const std::vector<int64_t> counts = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 48};
  for (const int64_t rows : counts) std::printf("%6lld", static_cast<long long>(rows));
  for (const int threads : {1, 2}) {
    std::printf("\n%d thread%s", threads, threads == 1 ? " " : "s");
    for (const int64_t rows : counts) {
      const SameBits bits = CompareRows(rows, threads);
      std::printf(" %3.0f %%", 100 * bits.identical);
      EXPECT_LE(bits.largest_difference, kTolerance) << rows << " rows, " << threads << " threads";
    }
  }
  std::printf("\nimages that have the bits of each alone, in a convolution of so many\n         ");
  for (const int64_t images : counts) std::printf("%6lld", static_cast<long long>(images));
  std::printf("\n1 thread ");
  for (const int64_t images : counts) {
    const SameBits bits = CompareImages(images);
    std::printf(" %3.0f %%", 100 * bits.identical);
    EXPECT_LE(bits.largest_difference, kTolerance) << images << " images";
  }
  std::printf("\n");
}

}  // namespace longshort::determinism_test

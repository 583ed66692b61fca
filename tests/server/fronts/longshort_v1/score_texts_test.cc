// ScoreText on classifiers and ScoreTexts over a real connection, with a scripted engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/schedule/refusal.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::score_texts_test {

using ::testing::HasSubstr;
using Stream = grpc::ClientReaderWriter<v1::ScoreTextsRequest, v1::ScoreTextsResponse>;

class ScoreTextsTest : public ServingFixture {
 protected:
  ScoreTextsTest() {
    auto classifier = std::make_unique<ScriptedClassifierEngine>();
    engine_ = classifier.get();
    auto speaker = std::make_unique<ScriptedEngine>();
    speaker_ = speaker.get();
    std::map<std::string, core::ServedModel::Kind> models;
    models["texts"] = TextClassifier(std::move(classifier));
    core::ServedLanguageModel language_model = std::move(*ByteModel());
    language_model.engine = std::move(speaker);
    models["speaker"] = std::move(language_model);
    models["images"] = ImageClassifier(std::make_unique<ScriptedClassifierEngine>());
    RequestLimits limits{.prompt_tokens = 1000, .generate_tokens = 1000};
    limits.stream_documents = 4;
    Serve(RegistryOf(std::move(models)), limits);
  }

  std::unique_ptr<Stream> Open() { return stub_->ScoreTexts(&context_); }

  // Waits until the server has processed all that the client has sent so far: it processes the ends of later streams
  // after that.
  void WaitUntilSeen() {
    for (int n = 0; n < 20; ++n) {
      grpc::ClientContext context;
      const auto later = stub_->ScoreTexts(&context);
      later->WritesDone();
      EXPECT_TRUE(later->Finish().ok());
    }
  }

  static v1::ScoreTextsRequest Message(uint64_t id, const std::string& text) {
    v1::ScoreTextsRequest message;
    message.set_id(id);
    message.mutable_input()->set_text(text);
    return message;
  }
  static v1::ScoreTextsRequest First(uint64_t id, const std::string& text, const std::string& model = "texts") {
    v1::ScoreTextsRequest message = Message(id, text);
    message.mutable_options()->mutable_model()->set_name(model);
    return message;
  }

  static void Answer(const std::vector<ScriptedClassifierEngine::Item>& items) {
    for (const auto& item : items) item.listener->OnFinished(ScoresFor(1));
  }

  grpc::ClientContext context_;
  ScriptedClassifierEngine* engine_;
  ScriptedEngine* speaker_;
};

TEST_F(ScoreTextsTest, AnswersComeAsTheyAreReadyAndAreMatchedById) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(7, "a")));
  ASSERT_TRUE(stream->Write(Message(8, "bb")));
  auto items = engine_->TakeItems(1);
  if (items.size() == 1) items.push_back(std::move(engine_->TakeItems(1)[0]));
  items[1].listener->OnFinished(ScoresFor(2));
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.id(), 8u);
  EXPECT_EQ(answer.classification().classification().classes(0).label(), "owl");
  EXPECT_EQ(answer.classification().documents(0).token_count(), 2);
  EXPECT_EQ(answer.model().name(), "texts");
  stream->WritesDone();
  items[0].listener->OnFinished(ScoresFor(0));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.id(), 7u);
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, DocumentsAreEmbeddedIfTheOptionsSaySo) {
  const auto stream = Open();
  v1::ScoreTextsRequest first = First(7, "abc");
  first.mutable_options()->mutable_embedding()->set_pooling(v1::POOLING_MEAN);
  first.mutable_options()->mutable_embedding()->set_normalize(true);
  ASSERT_TRUE(stream->Write(first));
  const auto items = engine_->TakeItems(1);
  EXPECT_EQ(items[0].request.output, models::ClassifierOutput::kMeanOfTokens);
  items[0].listener->OnFinished(core::ItemResult{.row = {3, 4}, .timings = {}});
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.id(), 7u);
  EXPECT_THAT(answer.embedding().values(), testing::ElementsAre(0.6F, 0.8F));
  EXPECT_EQ(answer.embedding().documents(0).token_count(), 3);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, AnEmbeddingHasNoClasses) {
  const auto stream = Open();
  v1::ScoreTextsRequest first = First(7, "abc");
  first.mutable_options()->mutable_embedding();
  first.mutable_options()->set_top_k(2);
  ASSERT_TRUE(stream->Write(first));
  EXPECT_EQ(stream->Finish().error_message(), "embedding is set with top_k or all_logits; an embedding has no classes");
}

TEST_F(ScoreTextsTest, ABadDocumentAnswersWithItsOwnErrorAndTheStreamGoesOn) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(1, "")));
  ASSERT_TRUE(stream->Write(Message(2, "longer than eight")));
  ASSERT_TRUE(stream->Write(Message(3, "fails")));
  ASSERT_TRUE(stream->Write(Message(4, "good")));
  stream->WritesDone();
  std::thread engine_thread([this] {
    auto items = engine_->TakeItems(1);
    if (items.size() == 1) items.push_back(std::move(engine_->TakeItems(1)[0]));
    items[0].listener->OnFinished(absl::InternalError("the model failed"));
    items[1].listener->OnFinished(ScoresFor(0));
  });
  std::map<uint64_t, v1::ScoreTextsResponse> answers;
  v1::ScoreTextsResponse answer;
  while (stream->Read(&answer)) answers[answer.id()] = answer;
  engine_thread.join();
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[1].error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answers[2].error().message(),
            "number of tokens of input is 17; it must be in [1, 8] (more with truncate, which reads the first 8)");
  EXPECT_EQ(answers[3].error().code(), grpc::StatusCode::INTERNAL);
  EXPECT_TRUE(answers[4].has_classification());
}

// The window has 4 documents: the fifth one is read only after an answer was written.
TEST_F(ScoreTextsTest, ReadsNoFurtherThanItsWindow) {
  const auto stream = Open();
  std::thread writer([&stream] {
    stream->Write(First(0, "x"));
    for (uint64_t id = 1; id < 100; ++id) stream->Write(Message(id, "x"));
    stream->WritesDone();
  });
  size_t answered = 0;
  std::set<uint64_t> ids;
  v1::ScoreTextsResponse answer;
  while (answered < 100) {
    while (engine_->size() < 4) std::this_thread::yield();
    absl::SleepFor(absl::Milliseconds(1));
    const auto items = engine_->TakeItems(4);
    EXPECT_EQ(items.size(), 4u);
    answered += items.size();
    Answer(items);
    for (size_t i = 0; i < items.size() && stream->Read(&answer); ++i) ids.insert(answer.id());
  }
  writer.join();
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(ids.size(), 100u);
}

// The engine takes one document at a time: submission 1 of document 2 is refused, and again after document 1 ended.
TEST_F(ScoreTextsTest, ADocumentThatFindsTheEngineFullWaitsForAnotherOfTheStream) {
  std::atomic<int> inside = 0;
  engine_->on_submit = [&inside](int) {
    return inside.fetch_add(1) == 0 ? absl::OkStatus() : (--inside, absl::ResourceExhaustedError("full"));
  };
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(0, "x")));
  for (uint64_t id = 1; id < 20; ++id) ASSERT_TRUE(stream->Write(Message(id, "x")));
  stream->WritesDone();
  std::thread engine_thread([&] {
    for (int i = 0; i < 20; ++i) {
      const auto items = engine_->TakeItems(1);
      absl::SleepFor(absl::Milliseconds(1));
      --inside;
      Answer(items);
    }
  });
  v1::ScoreTextsResponse answer;
  int classified = 0;
  while (stream->Read(&answer)) classified += answer.has_classification() ? 1 : 0;
  engine_thread.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(classified, 20);
}

absl::Status FullForNow(absl::Duration retry_after) {
  absl::Status full = absl::ResourceExhaustedError("full");
  core::SetRefusal(full, {.retry_after = retry_after, .queue_depth = 1});
  return full;
}

// Other calls fill the engine during the first 30 submissions: no document fails, and the stream reads no document
// after the held one.
TEST_F(ScoreTextsTest, ADocumentThatFindsTheEngineFullOfOthersWaits) {
  std::atomic<int> submissions = 0;
  engine_->on_submit = [&submissions](int n) {
    submissions = n + 1;
    return n < 30 ? FullForNow(absl::Milliseconds(1)) : absl::OkStatus();
  };
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(0, "x")));
  for (uint64_t id = 1; id < 100; ++id) ASSERT_TRUE(stream->Write(Message(id, "x")));
  stream->WritesDone();
  std::thread engine_thread([this] {
    for (size_t answered = 0; answered < 100;) {
      const auto items = engine_->TakeItems(1);
      answered += items.size();
      Answer(items);
    }
  });
  v1::ScoreTextsResponse answer;
  int classified = 0;
  while (stream->Read(&answer)) classified += answer.has_classification() ? 1 : 0;
  engine_thread.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(classified, 100);
  EXPECT_EQ(submissions, 130);
}

// The retry is at most a second later, whatever delay the refusal states, because room may become free earlier.
TEST_F(ScoreTextsTest, AHeldDocumentIsTriedAgainWithinASecondOrSo) {
  engine_->on_submit = [](int n) { return n == 0 ? FullForNow(absl::Hours(1)) : absl::OkStatus(); };
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(5, "x")));
  Answer(engine_->TakeItems(1));
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.has_classification());
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, ADocumentIsHeldUntilTheStreamsDeadline) {
  engine_->on_submit = [](int) { return FullForNow(absl::Milliseconds(1)); };
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(5, "x")));
  v1::ScoreTextsResponse answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 0);
}

TEST_F(ScoreTextsTest, AHeldDocumentTakesMemoryOfTheClient) {
  speaker_->on_submit = [](int) { return FullForNow(absl::Hours(1)); };
  const std::shared_ptr<Budget> all = environment_->message_memory->all();
  const auto await = [&all](int64_t held) {
    for (const absl::Time end = absl::Now() + absl::Seconds(20); all->held() < held && absl::Now() < end;) {
      std::this_thread::yield();
    }
    EXPECT_GE(all->held(), held);
  };
  constexpr int64_t kBytesOfHeld = 200 * 4;
  const auto stream = Open();
  await(1);
  const int64_t of_call = all->held();
  Budget::Share others(all);
  others.SetAmount(all->capacity() - of_call - 2 * kBytesOfHeld);  // a client leaves half of what is left
  ASSERT_TRUE(stream->Write(First(1, std::string(200, 'x'), "speaker")));
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted)) << answer.DebugString();
  others.SetAmount(0);
  ASSERT_TRUE(stream->Write(Message(2, std::string(200, 'x'))));
  await(of_call + kBytesOfHeld);
  context_.TryCancel();
  stream->Finish();
}

TEST_F(ScoreTextsTest, AStoppingServerDoesNotWaitForHeldDocuments) {
  absl::Notification refused;
  engine_->on_submit = [&refused](int) {
    if (!refused.HasBeenNotified()) refused.Notify();
    return FullForNow(absl::Hours(1));
  };
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(5, "x")));
  refused.WaitForNotification();
  gate_.Close();
  // The document has an answer if it is not held yet.
  for (v1::ScoreTextsResponse answer; stream->Read(&answer);) continue;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 1) << "cut off and ended";
}

TEST_F(ScoreTextsTest, ARefusalThatWillNotPassIsTheDocumentsError) {
  engine_->on_submit = [](int) { return absl::ResourceExhaustedError("too large for the cache"); };
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(5, "x")));
  stream->WritesDone();
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, KeepalivesComeWhileNothingElseDoesAndTakeNoRoomInTheWindow) {
  const auto stream = Open();
  v1::ScoreTextsRequest first = First(1, "a");
  first.mutable_options()->set_keep_alives(true);
  ASSERT_TRUE(stream->Write(first));
  v1::ScoreTextsResponse answer;
  for (int i = 0; i < 6; ++i) {  // more than the window's documents
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_TRUE(answer.has_keep_alive());
    EXPECT_EQ(answer.id(), 0u);
  }
  for (uint64_t id = 2; id <= 5; ++id) ASSERT_TRUE(stream->Write(Message(id, "b")));
  stream->WritesDone();
  std::set<uint64_t> answered;
  for (size_t i = 0; i < 5;) {
    const auto items = engine_->TakeItems(1);
    Answer(items);
    i += items.size();
  }
  while (stream->Read(&answer)) {
    if (!answer.has_keep_alive()) answered.insert(answer.id());
  }
  EXPECT_EQ(answered, (std::set<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, LanguageModelsScoreStreamsToo) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(1, "abc", "speaker")));
  const auto scoring = speaker_->TakeScorings(1)[0];
  EXPECT_EQ(scoring.request.tokens.size(), 3u);
  core::Score score;
  score.total_log_probability = -4;
  score.scored_tokens = 2;
  scoring.listener->OnFinished(score);
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.score().log_likelihood(), -4);
  EXPECT_EQ(answer.score().token_count(), 3);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, ALargeResultIsChargedFromTheEngineUntilItIsEncoded) {
  const std::shared_ptr<Budget> memory = environment_->message_memory->all();
  const auto stream = Open();
  v1::ScoreTextsRequest first = First(1, std::string(900, 'a'), "speaker");
  first.mutable_options()->set_token_log_probabilities(true);
  first.mutable_options()->set_top_alternatives(20);
  ASSERT_TRUE(stream->Write(first));
  auto scorings = speaker_->TakeScorings(1);
  constexpr int64_t kResultBytes = 900 * 21 * 16;
  EXPECT_GE(memory->held(), kResultBytes);
  scorings[0].listener->OnFinished(core::Score());
  scorings.clear();
  v1::ScoreTextsResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  while (memory->held() >= kResultBytes) std::this_thread::yield();
}

TEST_F(ScoreTextsTest, AnEmptyStreamEndsWell) {
  const auto stream = Open();
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, InvalidOptionsEndTheCall) {
  const auto of_images = Open();
  of_images->Write(First(1, "x", "images"));
  EXPECT_EQ(of_images->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  grpc::ClientContext unknown_context;
  const auto unknown = stub_->ScoreTexts(&unknown_context);
  unknown->Write(First(1, "x", "unknown"));
  EXPECT_EQ(unknown->Finish().error_code(), grpc::StatusCode::NOT_FOUND);

  grpc::ClientContext twice_context;
  const auto twice = stub_->ScoreTexts(&twice_context);
  twice->Write(First(1, "x"));
  twice->Write(First(2, "x"));
  const auto items = engine_->TakeItems(1);
  while (!items[0].request.context.cancelled->load()) std::this_thread::yield();
  items[0].listener->OnFinished(absl::CancelledError("cancelled"));
  const grpc::Status status = twice->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("options"));
}

TEST_F(ScoreTextsTest, AClientThatLeavesCancelsTheWork) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(1, "x")));
  auto items = engine_->TakeItems(1);
  context_.TryCancel();
  while (!items[0].request.context.cancelled->load()) std::this_thread::yield();
  items[0].listener->OnFinished(absl::CancelledError("cancelled"));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  items.clear();  // the listener holds the call
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 0);
}

TEST_F(ScoreTextsTest, AStoppingServerAnswersPendingDocumentsAndEndsAnIdleStream) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(1, "x")));
  auto items = engine_->TakeItems(1);
  gate_.Close();
  Answer(items);
  v1::ScoreTextsResponse answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  items.clear();  // the listener holds the call
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 1) << "its client had not ended it";
}

TEST_F(ScoreTextsTest, AStoppingServerFinishesAStreamThatHasSentEverything) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(First(1, "x")));
  ASSERT_TRUE(stream->Write(Message(2, "x")));
  stream->WritesDone();
  auto items = engine_->TakeItems(1);
  if (items.size() == 1) items.push_back(std::move(engine_->TakeItems(1)[0]));
  items[0].listener->OnFinished(ScoresFor(1));
  v1::ScoreTextsResponse answer;
  EXPECT_TRUE(stream->Read(&answer));
  WaitUntilSeen();
  gate_.Close();
  items[1].listener->OnFinished(ScoresFor(1));
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ScoreTextsTest, ScoreTextOnAClassifierReturnsClassesAndReadings) {
  v1::ScoreTextRequest request;
  request.mutable_model()->set_name("texts");
  request.add_inputs()->set_text("ab");
  request.add_inputs()->set_text("longer than eight");
  request.set_truncate(true);
  request.set_top_k(1);
  request.set_all_logits(true);
  std::thread engine_thread([this] { Answer(engine_->TakeItems(2)); });
  v1::ScoreTextResponse response;
  const grpc::Status status = stub_->ScoreText(&context_, request, &response);
  engine_thread.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.scores_size(), 0);
  ASSERT_EQ(response.classifications_size(), 2);
  const v1::TextClassification& cut = response.classifications(1);
  ASSERT_EQ(cut.classification().classes_size(), 1);
  EXPECT_EQ(cut.classification().classes(0).label(), "dog");
  EXPECT_THAT(cut.classification().logits(), testing::ElementsAre(0, 10, 2));
  EXPECT_EQ(cut.documents(0).token_count(), 8);
  EXPECT_TRUE(cut.documents(0).truncated());
  EXPECT_FALSE(response.classifications(0).documents(0).truncated());
  EXPECT_EQ(response.usage().prompt_tokens(), 10);
}

}  // namespace longshort::server::score_texts_test

// A second protocol, of plain structs, that scores, classifies and generates. It uses the calls and their handlers, but
// neither gRPC nor longshort.v1. The test shows that this is enough.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "server/call/call_record.h"
#include "server/call/stream_events.h"
#include "server/handlers/handlers.h"
#include "tests/server/fakes/plain_names.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort::server::second_front_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct PlainRequest {
  std::string model = {};
  std::vector<std::string> texts = {};
  // Shared, as in a protocol that sends several images in one buffer.
  std::shared_ptr<const std::vector<std::string>> pictures = nullptr;
};

struct Reply {
  absl::Status status;
  std::vector<std::string> lines;
};

// One call of the protocol, which holds its record until it has been answered.
class PlainCall final : public GenerationSink, public std::enable_shared_from_this<PlainCall> {
 public:
  PlainCall(const CallEnvironment& environment, CallOrigin origin)
      : record_(environment, kPlainNames, std::move(origin), [] { return UnreadAnswers::Owner(); }) {}

  // Unset until the call has ended.
  const std::optional<Reply>& reply() const { return reply_; }
  CallRecord& record() { return record_; }

  void Score(const PlainRequest& request) {
    ScoreCall call{.model = {.name = request.model}};
    for (const std::string& text : request.texts) {
      call.texts.push_back({.kind = TextInput::Kind::kText, .text = text});
    }
    Begin([&] {
      return ScoreText(record_, call, [self = shared_from_this()](absl::StatusOr<ScoreResult> result) {
        if (!result.ok()) return self->End(result.status());
        for (const ScoredText& text : result->texts) self->lines_.push_back(LineOf(text));
        self->End(absl::OkStatus());
      });
    });
  }

  void Classify(const PlainRequest& request) {
    ClassifyCall call{.model = {.name = request.model}, .options = {.top_k = 1}};
    for (const std::string& picture : *request.pictures) {
      ImageInput input;
      if (!picture.empty()) input.content = std::string_view(picture);
      input.owner = request.pictures;
      input.bytes = static_cast<int64_t>(picture.size());
      call.images.push_back(std::move(input));
    }
    Begin([&] {
      return ClassifyImages(record_, std::move(call),
                            [self = shared_from_this()](absl::StatusOr<ClassifyResult> result) {
                              if (!result.ok()) return self->End(result.status());
                              for (const absl::StatusOr<Classification>& image : result->images) {
                                self->lines_.push_back(image.ok() ? std::string(image->classes[0].label)
                                                                  : std::string(image.status().message()));
                              }
                              self->End(absl::OkStatus());
                            });
    });
  }

  void Generate(const PlainRequest& request, int64_t completions = 1) {
    Begin([&] {
      return longshort::server::Generate(
          record_, Prompted(request, completions), [self = shared_from_this()](absl::StatusOr<GenerateResult> result) {
            if (!result.ok()) return self->End(result.status());
            for (const Completion& completion : result->completions) self->lines_.push_back(completion.text);
            self->lines_.push_back(absl::StrCat(result->usage.generated_tokens, " tokens"));
            self->End(absl::OkStatus());
          });
    });
  }

  void Stream(const PlainRequest& request) {
    Begin([&] { return GenerateStream(record_, Prompted(request, 1), shared_from_this()); });
  }

  void Tokenize(const PlainRequest& request) {
    const TokenizeCall call{.model = {.name = request.model},
                            .text = {.kind = TextInput::Kind::kText, .text = request.texts[0]}};
    Begin([&]() -> absl::Status {
      const absl::StatusOr<TokenizeResult> result = longshort::server::Tokenize(record_, call);
      if (!result.ok()) return result.status();
      for (const int32_t id : result->ids) lines_.emplace_back(result->tokenizer->Decode(id));
      End(absl::OkStatus());
      return absl::OkStatus();
    });
  }

 private:
  // `request` must outlive the call.
  static GenerateCall Prompted(const PlainRequest& request, int64_t completions) {
    return {.model = {.name = request.model},
            .prompts = {TextInput{.kind = TextInput::Kind::kText, .text = request.texts[0]}},
            .completions = completions,
            .stop = {"."}};
  }

  static std::string LineOf(const ScoredText& text) {
    if (const auto* score = std::get_if<TextScore>(&text.result); score != nullptr) {
      return absl::StrCat(score->log_likelihood, " for ", score->token_count, " tokens");
    }
    return std::string(std::get<TextClassification>(text.result).classification.classes[0].label);
  }

  template <typename Work>
  void Begin(Work work) {
    absl::Status status = record_.Admit();
    if (status.ok()) status = work();
    if (!status.ok()) End(status);
  }

  void End(const absl::Status& status) { reply_ = Reply{.status = record_.Finish(status), .lines = std::move(lines_)}; }

  void Open(int32_t completions, StreamStart start) override {
    events_.emplace(completions);
    Push(std::move(start));
  }
  void Submitted(bool /*taken*/) override {}
  void Push(StreamEvent event) override { events_->Push(std::move(event)); }
  void Close(const absl::Status& status) override {
    while (const std::optional<StreamEvent> event = events_->Pop()) {
      if (const auto* delta = std::get_if<CompletionDelta>(&*event); delta != nullptr) lines_.push_back(delta->text);
      if (const auto* end = std::get_if<CompletionEnd>(&*event); end != nullptr) lines_.push_back("end " + end->stop);
    }
    End(status);
  }

  CallRecord record_;
  std::optional<StreamEvents> events_;
  std::vector<std::string> lines_;
  std::optional<Reply> reply_;
};

class SecondFrontTest : public ::testing::Test {
 protected:
  SecondFrontTest() {
    auto speaker = std::make_unique<ScriptedEngine>();
    speaker_ = speaker.get();
    auto images = std::make_unique<ScriptedClassifierEngine>();
    images_ = images.get();
    auto texts = std::make_unique<ScriptedClassifierEngine>();
    texts_ = texts.get();
    std::map<std::string, core::ServedModel::Kind> models;
    core::ServedLanguageModel language_model = std::move(*ByteModel());
    language_model.engine = std::move(speaker);
    models["speaker"] = std::move(language_model);
    models["images"] = ImageClassifier(std::move(images));
    models["texts"] = TextClassifier(std::move(texts));
    models_ = RegistryOf(std::move(models));
    manager_ = std::make_unique<ModelManager>(*models_, metrics_, log_);
    EXPECT_TRUE(deliveries_.Start().ok());
    environment_ =
        std::unique_ptr<CallEnvironment>(new CallEnvironment{.models = *models_,
                                                             .manager = *manager_,
                                                             .metrics = metrics_,
                                                             .log = log_,
                                                             .gate = gate_,
                                                             .deliveries = deliveries_,
                                                             .limits = {.prompt_tokens = 1000, .generate_tokens = 1000},
                                                             .keepalive_interval = absl::Seconds(10),
                                                             .slow_reader_timeout = absl::Seconds(30)});
  }

  std::shared_ptr<PlainCall> NewCall(const std::string& peer = "ipv4:127.0.0.1:40312") {
    CallOrigin origin;
    origin.peer = peer;
    origin.context.id = "1";
    origin.context.client = "phone";
    return std::make_shared<PlainCall>(*environment_, std::move(origin));
  }

  ScriptedEngine* speaker_;
  ScriptedClassifierEngine* images_;
  ScriptedClassifierEngine* texts_;
  std::unique_ptr<core::ModelRegistry> models_;
  ServerMetrics metrics_{{1.0}};
  Logger log_{LogFormat::kText, LogLevel::kError};
  CallGate gate_;
  DeliveryThreads deliveries_{1};
  std::unique_ptr<ModelManager> manager_;
  std::unique_ptr<CallEnvironment> environment_;
};

TEST_F(SecondFrontTest, WithoutTokensAClientIsItsAddressUnlessItsNameIsTrusted) {
  const auto client_of = [&](const std::string& peer) {
    const auto call = NewCall(peer);
    EXPECT_TRUE(call->record().Admit().ok());
    return call->record().engine_context().client;
  };
  EXPECT_EQ(client_of("ipv4:10.1.2.3:5"), "ipv4:10.1.2.3");
  // A client of IPv6 can choose among the addresses of its network.
  EXPECT_EQ(client_of("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:7"), "ipv6:2001:db8:1:2::");
  EXPECT_EQ(client_of("ipv6:[2001:db8:1:2:9:9:9:9]:8"), "ipv6:2001:db8:1:2::");
  EXPECT_EQ(client_of("ipv6:%5B::ffff:10.1.2.3%5D:7"), "ipv6:::ffff:10.1.2.3");
  EXPECT_EQ(client_of("unix:"), "unix:");
  environment_->trusts_client_ids = true;
  EXPECT_EQ(client_of("ipv4:10.1.2.3:5"), "phone");
}

TEST_F(SecondFrontTest, ALanguageModelScoresInTheOrderOfTheTexts) {
  const auto call = NewCall();
  call->Score({.model = "speaker", .texts = {"aa", "bbb"}});
  const auto scorings = speaker_->TakeScorings(2);
  EXPECT_EQ(scorings[0].request.context.client, "ipv4:127.0.0.1");
  for (const size_t i : {1, 0}) {
    longshort::core::Score score;
    score.total_log_probability = i == 0 ? -1 : -4;
    scorings[i].listener->OnFinished(score);
  }
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_TRUE(call->reply()->status.ok()) << call->reply()->status;
  EXPECT_THAT(call->reply()->lines, ElementsAre("-1 for 2 tokens", "-4 for 3 tokens"));
  EXPECT_THAT(metrics_.Serialize(),
              HasSubstr(R"(longshort_requests_total{code="OK",model="speaker",rpc="Ask",version=""} 1)"));
}

TEST_F(SecondFrontTest, AClassifierScoresTexts) {
  const auto call = NewCall();
  call->Score({.model = "texts", .texts = {"ab"}});
  texts_->TakeItems(1)[0].listener->OnFinished(ScoresFor(2));
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_THAT(call->reply()->lines, ElementsAre("owl"));
}

TEST_F(SecondFrontTest, ImagesAreNotCopiedAndEachHasItsOwnError) {
  const auto pictures =
      std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"a picture", "broken", "", "another"});
  const auto call = NewCall();
  call->Classify({.model = "images", .pictures = pictures});
  auto items = images_->TakeItems(3);
  EXPECT_FALSE(call->reply().has_value());
  for (auto& item : items) {
    const auto prepared = std::get<core::ItemPreparation>(item.request.item)();
    item.listener->OnFinished(prepared.ok() ? ScoresFor(1) : absl::StatusOr<core::ItemResult>(prepared.status()));
  }
  EXPECT_EQ(pictures.use_count(), 4) << "this one, and one for each queued image";
  items.clear();
  EXPECT_EQ(pictures.use_count(), 1);
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_THAT(call->reply()->lines,
              ElementsAre("dog", "picture#1: not an image", "picture#2 is unset; it must have a picture", "dog"));
}

TEST_F(SecondFrontTest, TextsAreGeneratedAtOnce) {
  const auto call = NewCall();
  const PlainRequest request{.model = "speaker", .texts = {"p"}};
  call->Generate(request, 2);
  const auto generations = speaker_->TakeGenerations(2);
  EXPECT_THAT(generations[0].request.stop_strings, ElementsAre("."));
  for (const auto& generation : generations) {
    generation.listener->OnDelta({.bytes = "caf\xC3", .tokens = {core::GeneratedToken()}});
    generation.listener->OnDelta({.bytes = "\xA9", .tokens = {core::GeneratedToken()}});
    core::GenerationSummary summary;
    summary.generated_tokens = 2;
    generation.listener->OnFinished(absl::OkStatus(), summary);
  }
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_THAT(call->reply()->lines, ElementsAre("caf\xC3\xA9", "caf\xC3\xA9", "4 tokens"));
}

TEST_F(SecondFrontTest, TextsAreStreamed) {
  const auto call = NewCall();
  const PlainRequest request{.model = "speaker", .texts = {"p"}};
  call->Stream(request);
  const auto generation = speaker_->TakeGenerations(1)[0];
  generation.listener->OnDelta({.bytes = "text", .tokens = {core::GeneratedToken()}});
  EXPECT_FALSE(call->reply().has_value());
  core::GenerationSummary summary;
  summary.stop_string = ".";
  generation.listener->OnFinished(absl::OkStatus(), summary);
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_THAT(call->reply()->lines, ElementsAre("text", "end ."));
}

TEST_F(SecondFrontTest, ATextIsTokenised) {
  const auto call = NewCall();
  call->Tokenize({.model = "speaker", .texts = {"ab"}});
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_THAT(call->reply()->lines, ElementsAre("a", "b"));
}

TEST_F(SecondFrontTest, ErrorsUseTheFieldNamesOfTheProtocol) {
  const auto empty = NewCall();
  empty->Score({.model = "speaker"});
  EXPECT_EQ(empty->reply()->status, absl::InvalidArgumentError("number of texts is 0; it must be in [1, 2048]"));
  const auto long_text = NewCall();
  long_text->Score({.model = "texts", .texts = {"ok", "longer than eight"}});
  EXPECT_EQ(long_text->reply()->status.message(),
            "number of tokens of text#1 is 17; it must be in [1, 8] (more with cut, which reads the first 8)");
  const auto wrong_kind = NewCall();
  wrong_kind->Generate({.model = "images", .texts = {"p"}});
  EXPECT_EQ(wrong_kind->reply()->status,
            absl::FailedPreconditionError("Ask needs a language model; model images is a classifier"));
  const auto unknown = NewCall();
  unknown->Stream({.model = "unknown", .texts = {"p"}});
  EXPECT_EQ(unknown->reply()->status.code(), absl::StatusCode::kNotFound);
}

TEST_F(SecondFrontTest, ARefusalKeepsItsRetryDelay) {
  speaker_->on_submit = [](int) {
    absl::Status full = absl::ResourceExhaustedError("full");
    core::SetRefusal(full, {.retry_after = absl::Seconds(2), .queue_depth = 17});
    return full;
  };
  const auto call = NewCall();
  call->Score({.model = "speaker", .texts = {"a"}});
  ASSERT_TRUE(call->reply().has_value());
  EXPECT_EQ(call->reply()->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::GetRefusal(call->reply()->status)->queue_depth, 17);
}

TEST_F(SecondFrontTest, AStoppingServerTakesNoCallAndKnowsThoseThatAreLeft) {
  auto call = NewCall();
  const PlainRequest request{.model = "speaker", .texts = {"p"}};
  call->Stream(request);
  gate_.Close();
  const auto late = NewCall();
  late->Tokenize(request);
  EXPECT_EQ(late->reply()->status, absl::UnavailableError("the server is stopping"));
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::UnixEpoch()), 1);
  call->record().Cancel();
  {
    const auto generation = speaker_->TakeGenerations(1)[0];
    EXPECT_TRUE(generation.request.context.cancelled->load());
    generation.listener->OnFinished(absl::CancelledError("cancelled"), {});
  }
  EXPECT_EQ(call->reply()->status.code(), absl::StatusCode::kCancelled);
  call.reset();
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::UnixEpoch()), 0) << "nothing holds a call that is over";
}

}  // namespace longshort::server::second_front_test

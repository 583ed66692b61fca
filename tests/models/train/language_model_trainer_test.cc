#include "models/train/language_model_trainer.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/language_model/transformer_ls.h"
#include "models/train/commands.h"
#include "models/train/model_writer.h"
#include "models/train/training_text.h"
#include "models/weights/model_directory.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/train/trained_weights.h"

namespace longshort::models::language_model_trainer_test {

using ::testing::HasSubstr;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class LanguageModelTrainerTest : public ::testing::Test {
 protected:
  LanguageModelTrainerTest() {
    for (int i = 0; i < 400; ++i) text_ += "the quick brown fox no. " + std::to_string(i % 7) + "\n";
  }

  LanguageModelTrainerOptions Options(const std::string& name, int64_t steps) const {
    LanguageModelTrainerOptions options;
    options.config.layers = 2;
    options.config.model_width = 16;
    options.config.heads = 2;
    options.config.feed_forward_width = 32;
    options.config.chunk_size = 4;
    options.config.window_length = 8;
    options.config.memory_length = 16;
    options.config.segment_length = 16;
    options.batch = 4;
    options.tokens_per_stream = 32;
    options.shards = 2;
    options.loop.optimizer.total_steps = steps;
    options.loop.optimizer.warmup_steps = 4;
    options.held_out_fraction = 0.1;
    options.loop.held_out_interval = 1000;
    options.loop.checkpoint_interval = 10;
    options.loop.checkpoint_path = directory_ + "/" + name + ".checkpoint";
    options.output_directory = directory_ + "/" + name;
    return options;
  }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path();
  std::string text_;
};

TEST_F(LanguageModelTrainerTest, AStoppedRunGoesOnExactlyWhereItStopped) {
  ASSERT_TRUE(TrainLanguageModel(Options("whole", 12), text_).ok());
  LanguageModelTrainerOptions interrupted = Options("interrupted", 12);
  interrupted.loop.stop_after_steps = 8;
  ASSERT_TRUE(TrainLanguageModel(interrupted, text_).ok());
  EXPECT_FALSE(std::filesystem::exists(interrupted.output_directory));
  interrupted.loop.stop_after_steps = 0;
  ASSERT_TRUE(TrainLanguageModel(interrupted, text_).ok());
  EXPECT_EQ(Contents(directory_ + "/whole/model.safetensors"), Contents(directory_ + "/interrupted/model.safetensors"));
}

// The memory of each stream moves to the shard that computes the stream, and its dropout does not depend on the shard.
TEST_F(LanguageModelTrainerTest, AStoppedRunGoesOnWithAnotherNumberOfShards) {
  LanguageModelTrainerOptions whole_run = Options("whole", 12);
  whole_run.dropout = {.rows = 0.5};
  ASSERT_TRUE(TrainLanguageModel(whole_run, text_).ok());
  LanguageModelTrainerOptions interrupted = Options("interrupted", 12);
  interrupted.dropout = {.rows = 0.5};
  interrupted.loop.stop_after_steps = 8;
  ASSERT_TRUE(TrainLanguageModel(interrupted, text_).ok());
  interrupted.loop.stop_after_steps = 0;
  interrupted.shards = 3;
  const absl::Status status = TrainLanguageModel(interrupted, text_);
  ASSERT_TRUE(status.ok()) << status;
  const auto whole = OpenModelDirectory(directory_ + "/whole"), other = OpenModelDirectory(directory_ + "/interrupted");
  ASSERT_TRUE(whole.ok() && other.ok());
  const std::vector<NamedParameter> expected = TrainedWeights(whole->weights), weights = TrainedWeights(other->weights);
  ASSERT_EQ(weights.size(), expected.size());
  // Rounding alone; Adam turns that of a gradient near 0 into a part of a step of 2e-3.
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT((weights[i].value - expected[i].value).abs().max().item<double>(), 1e-3) << weights[i].name;
  }
}

// The validation part is the text's end before the held-out part, here of other bytes than the rest.
TEST_F(LanguageModelTrainerTest, AValidationPartIsNotTrainedOn) {
  LanguageModelTrainerOptions options = Options("validated", 6);
  options.validation_fraction = 0.1;
  options.loop.keep_best = true;
  options.loop.held_out_interval = 2;
  testing::internal::CaptureStderr();
  const absl::Status status = TrainLanguageModel(options, text_);
  const std::string errors = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(status.ok()) << status;
  const size_t tenth = text_.size() / 10;
  EXPECT_THAT(errors, HasSubstr(absl::StrCat(" to train on, ", tenth, " to choose the best weights, ")));
  EXPECT_THAT(errors, HasSubstr("step 2: validation "));
  options.validation_fraction = 0.95;
  EXPECT_EQ(TrainLanguageModel(options, text_).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LanguageModelTrainerTest, WritesAModelThatTheServersCodeLoads) {
  ASSERT_TRUE(TrainLanguageModel(Options("model", 10), text_).ok());
  const auto model = LoadLanguageModel(directory_ + "/model", {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->info().vocabulary_size, 264);
  const auto opened = OpenModelDirectory(directory_ + "/model");
  ASSERT_TRUE(opened.ok());
  const auto tokenizer = LoadTokenizer(*opened);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte.push_back(static_cast<char>(byte));
  EXPECT_TRUE((*tokenizer)->Encode(every_byte).ok());
}

TEST_F(LanguageModelTrainerTest, RefusesACheckpointOfAnotherRun) {
  ASSERT_TRUE(TrainLanguageModel(Options("run", 10), text_).ok());
  std::filesystem::remove_all(Options("run", 10).output_directory);
  const auto expect_refused = [this](const char* named, const auto& change) {
    LanguageModelTrainerOptions other = Options("run", 10);
    change(other);
    const absl::Status status = TrainLanguageModel(other, text_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(named));
    EXPECT_LT(status.message().size(), 400) << "only what differs is printed";
  };
  expect_refused("--learning-rate is 0.002 there and 0.001 here",
                 [](auto& options) { options.loop.optimizer.peak_learning_rate = 1e-3; });
  expect_refused("--seed is 1 there and 2 here", [](auto& options) { options.seed = 2; });
  expect_refused("window_length is", [](auto& options) { options.config.window_length /= 2; });
}

// With a constant learning rate, the number of steps alone decides the weights.
TEST_F(LanguageModelTrainerTest, AnotherNumberOfStepsLengthensARunOrEndsItEarly) {
  const auto options_of = [this](const std::string& name, int64_t steps) {
    LanguageModelTrainerOptions options = Options(name, steps);
    options.loop.optimizer.warmup_steps = 0;
    options.loop.optimizer.final_fraction = 1;
    return options;
  };
  const auto model_of = [&](const LanguageModelTrainerOptions& options) {
    const absl::Status status = TrainLanguageModel(options, text_);
    EXPECT_TRUE(status.ok()) << status;
    return Contents(options.output_directory + "/model.safetensors");
  };
  const std::string four = model_of(options_of("four", 4)), eight = model_of(options_of("eight", 8));
  EXPECT_NE(four, eight);
  EXPECT_EQ(model_of(options_of("four", 8)), eight) << "a finished run is lengthened";

  LanguageModelTrainerOptions stopped = options_of("stopped", 30);
  stopped.loop.stop_after_steps = 4;
  model_of(stopped);
  EXPECT_FALSE(std::filesystem::exists(stopped.output_directory));
  EXPECT_EQ(model_of(options_of("stopped", 4)), four) << "a stopped run ends at the step that it has reached";
  stopped.loop.stop_after_steps = 0;
  stopped.loop.optimizer.total_steps = 3;
  EXPECT_EQ(model_of(stopped), four) << "no step is taken back";
}

TEST_F(LanguageModelTrainerTest, TheLearningRateFollowsTheNewNumberOfSteps) {
  LanguageModelTrainerOptions options = Options("lengthened", 4), whole = Options("whole", 8);
  options.loop.optimizer.warmup_steps = whole.loop.optimizer.warmup_steps = 1;
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  options.loop.optimizer.total_steps = 8;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the run has 8 steps now instead of 4"));
  ASSERT_TRUE(TrainLanguageModel(whole, text_).ok());
  EXPECT_NE(Contents(options.output_directory + "/model.safetensors"),
            Contents(directory_ + "/whole/model.safetensors"))
      << "its first steps had the rates of a run of 4";
}

TEST_F(LanguageModelTrainerTest, ATimeLimitEndsARunAndCountsItsEarlierParts) {
  LanguageModelTrainerOptions options = Options("run", 1'000'000'000);
  options.loop.time_limit = absl::Seconds(1);
  const absl::Time start = absl::Now();
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
  EXPECT_TRUE(std::filesystem::exists(options.output_directory));
  const std::string checkpoint = Contents(options.loop.checkpoint_path);
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  EXPECT_EQ(Contents(options.loop.checkpoint_path), checkpoint) << "its time is over";
}

TEST_F(LanguageModelTrainerTest, AModelOfAnotherRunIsReplacedOnlyOnRequest) {
  LanguageModelTrainerOptions options = Options("run", 2);
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  const std::string model = options.output_directory + "/model.safetensors", first = Contents(model);
  options.seed = 2;
  absl::Status status = TrainLanguageModel(options, text_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("--replace"));
  std::filesystem::remove(options.loop.checkpoint_path);
  EXPECT_FALSE(TrainLanguageModel(options, text_).ok()) << "without a checkpoint, too";
  EXPECT_EQ(Contents(model), first);

  options.loop.replace = true;
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  EXPECT_NE(Contents(model), first);
}

TEST_F(LanguageModelTrainerTest, ARunBeginsWithAnotherModelsWeights) {
  LanguageModelTrainerOptions options = Options("first", 12);
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  LanguageModelTrainerOptions next = Options("next", 1);
  next.from = options.output_directory;
  next.config = {};  // the model's is taken
  next.loop.optimizer.peak_learning_rate = 1e-9;
  ASSERT_TRUE(TrainLanguageModel(next, text_).ok());
  const auto first = OpenModelDirectory(options.output_directory), second = OpenModelDirectory(next.output_directory);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->config_text, second->config_text);
  EXPECT_EQ(first->vocabulary_text, second->vocabulary_text);
  const at::Tensor before = TrainedWeights(first->weights).front().value;
  EXPECT_LT((TrainedWeights(second->weights).front().value - before).abs().max().item<double>(), 1e-3);

  next.from = directory_ + "/none";
  EXPECT_EQ(TrainLanguageModel(next, text_).code(), absl::StatusCode::kNotFound);
}

TEST_F(LanguageModelTrainerTest, StopsAtAGradientThatIsNotFiniteAndKeepsTheCheckpoint) {
  LanguageModelTrainerOptions options = Options("diverging", 30);
  options.loop.optimizer.peak_learning_rate = 1e30;
  options.loop.optimizer.warmup_steps = 12;
  const absl::Status trained = TrainLanguageModel(options, text_);
  EXPECT_EQ(trained.code(), absl::StatusCode::kOutOfRange) << trained;
  EXPECT_FALSE(std::filesystem::exists(options.output_directory));
}

TEST_F(LanguageModelTrainerTest, RefusesOptionsThatDoNotFitTogether) {
  LanguageModelTrainerOptions options = Options("bad", 10);
  options.tokens_per_stream = 24;
  EXPECT_EQ(TrainLanguageModel(options, text_).code(), absl::StatusCode::kInvalidArgument);
  options = Options("bad", 10);
  options.shards = 5;
  EXPECT_EQ(TrainLanguageModel(options, text_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TrainLanguageModel(Options("bad", 10), "short").code(), absl::StatusCode::kInvalidArgument);
}

// Each would be an abort, a model of random weights, or hours for nothing.
TEST(LanguageModelCommand, RefusesNumbersThatCannotBe) {
  for (const char* const option : {"--steps=0",
                                   "--warmup-steps=-1",
                                   "--held-out-interval=-1",
                                   "--checkpoint-interval=0",
                                   "--stop-after-steps=-1",
                                   "--learning-rate=0",
                                   "--learning-rate=-1",
                                   "--learning-rate=nan",
                                   "--weight-decay=nan",
                                   "--held-out=0",
                                   "--held-out=1",
                                   "--held-out=2",
                                   "--held-out=-1",
                                   "--held-out=nan",
                                   "--tokens-per-stream=0",
                                   "--tokens-per-stream=-16",
                                   "--tokens-per-stream=9223372036854775807",
                                   "--batch=0",
                                   "--batch=-16",
                                   "--batch=9223372036854775807",
                                   "--shards=0"}) {
    const absl::Status status = RunLanguageModelCommand({option});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_NE(status.message().find("; it must be in ["), absl::string_view::npos) << status;
  }
}

TEST_F(LanguageModelTrainerTest, RefusesPlacesThatCannotBe) {
  const auto expect_refused = [this](const std::string& option, const auto& change) {
    LanguageModelTrainerOptions options = Options("bad", 10);
    change(options);
    const absl::Status status = TrainLanguageModel(options, text_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_NE(status.message().find("--" + option), absl::string_view::npos) << status;
    EXPECT_TRUE(std::filesystem::is_empty(directory_)) << option;
  };
  expect_refused("stop-after-steps", [](auto& options) {
    options.loop.stop_after_steps = 5;
    options.loop.checkpoint_path.clear();
  });
  expect_refused("checkpoint", [](auto& options) { options.loop.checkpoint_path = "/no/such/folder/x"; });
  expect_refused("out", [](auto& options) { options.output_directory = "/dev/null/x"; });
}

TEST_F(LanguageModelTrainerTest, ARunThatHasPassedItsStopStopsAgain) {
  LanguageModelTrainerOptions options = Options("parts", 12);
  options.loop.stop_after_steps = 8;
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  const std::string checkpoint = Contents(options.loop.checkpoint_path);
  options.loop.stop_after_steps = 5;
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  EXPECT_EQ(Contents(options.loop.checkpoint_path), checkpoint);
  EXPECT_FALSE(std::filesystem::exists(options.output_directory));
}

TEST_F(LanguageModelTrainerTest, AModelIsReplacedAsOneAndNothingElse) {
  const std::filesystem::path out = directory_ + "/model";
  std::filesystem::create_directories(out);
  std::ofstream(out / "labels.txt") << "of another model\n";
  LanguageModelTrainerOptions options = Options("model", 2);
  options.output_directory += "/";
  ASSERT_TRUE(TrainLanguageModel(options, text_).ok());
  EXPECT_FALSE(std::filesystem::exists(out / "labels.txt"));
  EXPECT_TRUE(std::filesystem::exists(out / "config.json"));
  const auto entries = std::filesystem::directory_iterator(directory_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2) << "the model and the checkpoint";

  std::ofstream(out / "notes.md") << "mine\n";
  const absl::Status status = TrainLanguageModel(options, text_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(std::filesystem::exists(out / "notes.md"));
}

TEST_F(LanguageModelTrainerTest, CtrlCStopsTheRunBehindAStepWithACheckpoint) {
  LanguageModelTrainerOptions options = Options("long", 1'000'000);
  options.loop.checkpoint_interval = options.loop.optimizer.total_steps;
  std::atomic<bool> ended = false;
  std::thread person([&ended] {
    const auto would_end_the_process = [] {
      struct sigaction action = {};
      return sigaction(SIGINT, nullptr, &action) != 0 || action.sa_handler == SIG_DFL;
    };
    while (!ended && would_end_the_process()) std::this_thread::yield();
    if (!ended) kill(getpid(), SIGINT);
  });
  const absl::Status status = TrainLanguageModel(options, text_);
  ended = true;
  person.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_NE(status.message().find("to continue, run the same command again"), absl::string_view::npos) << status;
  EXPECT_TRUE(std::filesystem::exists(options.loop.checkpoint_path));
  EXPECT_FALSE(std::filesystem::exists(options.output_directory));
}

TEST_F(LanguageModelTrainerTest, AModelThatHasDivergedIsNotWritten) {
  LanguageModelTrainerOptions options = Options("diverged", 1);
  options.loop.optimizer.warmup_steps = 0;
  options.loop.optimizer.peak_learning_rate = 1e38;
  const absl::Status status = TrainLanguageModel(options, text_);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_FALSE(std::filesystem::exists(options.output_directory));
}

TEST(StreamBatches, StreamsRunOnFromBatchToBatchAndTargetsAreTheNextTokens) {
  std::vector<int32_t> ids(100);
  for (int32_t i = 0; i < 100; ++i) ids[i] = i;
  const StreamBatches batches(ids, 2, 8);
  EXPECT_EQ(batches.batches_per_pass(), 6);  // (100 - 1) / 2 = 49 tokens a stream
  const auto first = batches.At(0), second = batches.At(1), next_pass = batches.At(6);
  EXPECT_TRUE(first.starts);
  EXPECT_FALSE(second.starts);
  EXPECT_TRUE(next_pass.starts);
  const auto at = [](const at::Tensor& tensor, int64_t row, int64_t column) {
    return tensor.const_data_ptr<int64_t>()[row * tensor.size(1) + column];
  };
  EXPECT_EQ(at(first.inputs, 0, 0), 0);
  EXPECT_EQ(at(first.inputs, 1, 0), 49);
  EXPECT_EQ(at(first.targets, 1, 0), 50);
  EXPECT_EQ(at(second.inputs, 0, 0), 8);
  EXPECT_EQ(at(second.targets, 0, 7), 16);
  EXPECT_EQ(at(next_pass.inputs, 0, 0), 4);  // half a batch on
}

}  // namespace longshort::models::language_model_trainer_test

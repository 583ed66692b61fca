// How a GPU's backend handles device failures. backend_test.cc compares its arithmetic with the reference.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "c10/core/CPUAllocator.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/models/families/language_model/emulated_backends.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::gpu_backend_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One layer: a step has few calls, and the test makes each of them fail.
LanguageModelConfig TestedConfig() {
  LanguageModelConfig config = SmallConfig();
  config.layers = 1;
  return config;
}

constexpr WorkerDevice kWorker = {.kind = DeviceKind::kEmulated};

class GpuBackendTest : public testing::Test {
 protected:
  GpuBackendTest() {
    loss_->SetListener([this](const std::string& why) { losses_.push_back(why); });
  }

  std::unique_ptr<LanguageModel> MakeModel(const EmulatedDeviceOptions& options = {}, int64_t max_graph_rows = 0) {
    const EmulatedBackends backends(
        options, [this](EmulatedDevice& device) { devices_.push_back(&device); }, loss_, max_graph_rows);
    return RandomModelOn(OnDevice("", kWorker, &backends), config_, 5);
  }

  // The first step of a new sequence, whose tokens fill a chunk and begin another.
  absl::StatusOr<std::vector<float>> ReadFirstTokens(LanguageModel& model, core::PagedCache& cache) const {
    const std::vector<int32_t> tokens(config_.chunk_size + 2, 3);
    const auto count = static_cast<int64_t>(tokens.size());
    const std::unique_ptr<core::CachedSequence> sequence = *cache.Begin(tokens, 0, count);
    Slice slice;
    slice.tokens = tokens;
    slice.logit_rows = count;
    EXPECT_TRUE(sequence->FillIn(slice).ok());
    const absl::StatusOr<StepResult> result = model.Step({slice});
    if (!result.ok()) return result.status();
    return std::vector<float>(result->logits.begin(), result->logits.end());
  }

  LanguageModelConfig config_ = TestedConfig();
  const std::shared_ptr<GpuLoss> loss_ = std::make_shared<GpuLoss>();
  std::vector<std::string> losses_;
  std::vector<EmulatedDevice*> devices_;  // in the order of their opening; those of models that are gone are gone
};

TEST_F(GpuBackendTest, AFaultOfAnyCallFailsItsStepAndNothingElse) {
  for (const int64_t max_graph_rows : {0, 8}) {
    const std::unique_ptr<LanguageModel> model = MakeModel({}, max_graph_rows);
    const auto cache = *core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
    EmulatedDevice& device = *devices_.back();
    for (int step = 0; step < 2; ++step) {  // buffers have grown, which steps use in turn
      ASSERT_TRUE(ReadFirstTokens(*model, *cache).ok());
    }
    const int64_t before = device.calls();
    const absl::StatusOr<std::vector<float>> expected = ReadFirstTokens(*model, *cache);
    const int64_t calls = device.calls() - before;
    ASSERT_TRUE(expected.ok()) << expected.status();
    // A graph: its numbers are copied, and logits back.
    ASSERT_GT(calls, max_graph_rows > 0 ? 4 : 10);
    for (int64_t call = 0; call < calls; ++call) {
      const bool no_memory = call % 2 == 1;
      device.FailAfter(call, no_memory ? DeviceFault::kOutOfMemory : DeviceFault::kError);
      EXPECT_EQ(ReadFirstTokens(*model, *cache).status().code(),
                no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal)
          << call;
      const absl::StatusOr<std::vector<float>> again = ReadFirstTokens(*model, *cache);
      ASSERT_TRUE(again.ok()) << call << ": " << again.status();
      EXPECT_EQ(*again, *expected) << call;
    }
  }
  EXPECT_THAT(losses_, IsEmpty());
}

// LibTorch's current stream is the thread's: here the default one, or that of the device that was opened last.
TEST_F(GpuBackendTest, TheFirstStepOfAThreadUsesItsOwnStream) {
  const std::unique_ptr<LanguageModel> model = MakeModel();
  const auto cache = *core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  absl::StatusOr<std::vector<float>> expected;
  std::thread([&] { expected = ReadFirstTokens(*model, *cache); }).join();
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::unique_ptr<LanguageModel> opened_last = MakeModel();
  const absl::StatusOr<std::vector<float>> again = ReadFirstTokens(*model, *cache);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *expected);
}

// A model is loaded when its pages are there, and graphs of its steps.
TEST_F(GpuBackendTest, GraphsThatCannotBeCapturedRefuseTheCacheAndLaterOnesServe) {
  const std::unique_ptr<LanguageModel> model = MakeModel({}, 2);
  EmulatedDevice& device = *devices_.back();
  const CachePages pages = core::PagesForStreams(model->info(), 1);
  ASSERT_TRUE(model->AllocateCache(pages).ok());
  EXPECT_EQ(device.replays(), 4) << "of one row and of two, each with ends of chunks and without";
  EXPECT_EQ(device.kernels_run().at("AttendToBlocks"), 8) << "each was run without a graph before it was captured";
  const int64_t before = device.calls();
  ASSERT_TRUE(model->AllocateCache(pages).ok());
  const int64_t calls = device.calls() - before;
  for (int64_t call = 0; call < calls; call += 3) {
    device.FailAfter(call, call % 2 == 0 ? DeviceFault::kError : DeviceFault::kOutOfMemory);
    EXPECT_FALSE(model->AllocateCache(pages).ok()) << call;
  }
  const auto cache = core::PagedCache::Create(*model, pages);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_TRUE(ReadFirstTokens(*model, **cache).ok());
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(GpuBackendTest, AGpuThatIsLostWhileAGraphRunsIsReportedOnce) {
  const std::unique_ptr<LanguageModel> model = MakeModel({}, 8);
  const auto cache = *core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  devices_.back()->FailAfter(3, DeviceFault::kLost);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ReadFirstTokens(*model, *cache).status().code(), absl::StatusCode::kInternal);
  }
  EXPECT_THAT(losses_, ElementsAre(HasSubstr(devices_.front()->facts().name)));
}

TEST_F(GpuBackendTest, TakesOfItsDeviceWhatItSaysBesidePages) {
  const std::unique_ptr<LanguageModel> model = MakeModel({}, 64);  // logits of 64 rows are more than strips
  EmulatedDevice& device = *devices_.back();
  ASSERT_TRUE(model->AllocateCache({}).ok());
  const int64_t taken = device.facts().memory_bytes - device.free_bytes();
  EXPECT_GE(taken, model->info().workspace_bytes);
  EXPECT_LE(taken, model->info().workspace_bytes + 7 * 512) << "pieces begin at multiples of 256, with a strip between";
}

TEST_F(GpuBackendTest, AGpuThatIsLostIsReportedOnce) {
  const std::unique_ptr<LanguageModel> model = MakeModel();
  const auto cache = *core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  devices_.front()->FailAfter(7, DeviceFault::kLost);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ReadFirstTokens(*model, *cache).status().code(), absl::StatusCode::kInternal);
  }
  EXPECT_EQ(model->ReadPage(PageKind::kWindow, 0, {0, 1}).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(losses_, ElementsAre(HasSubstr(devices_.front()->facts().name)));
}

// LibTorch's allocator, which calls a function, once, before it allocates.
class InterruptedAllocator final : public c10::Allocator {
 public:
  InterruptedAllocator() { c10::SetCPUAllocator(this, /*priority=*/2); }

  std::function<void()> interruption;

  c10::DataPtr allocate(size_t bytes) override {
    if (const auto interrupt = std::exchange(interruption, nullptr)) interrupt();
    return before_->allocate(bytes);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { before_->copy_data(to, from, bytes); }

 private:
  c10::Allocator* const before_ = c10::GetCPUAllocator();
};

// LibTorch throws before any call of the device reports the loss.
TEST_F(GpuBackendTest, AGpuThatIsLostInACallOfLibTorchIsReported) {
  const std::unique_ptr<LanguageModel> model = MakeModel();
  const auto cache = *core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  static InterruptedAllocator& allocator = *new InterruptedAllocator;
  for (const bool is_lost : {false, true}) {
    allocator.interruption = [&] {
      if (is_lost) devices_.back()->FailAfter(0, DeviceFault::kLost);
      if (is_lost) devices_.back()->Synchronize().IgnoreError();
      throw std::runtime_error("CUDA error: unspecified launch failure");
    };
    EXPECT_EQ(ReadFirstTokens(*model, *cache).status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(losses_.size(), is_lost ? 1u : 0u);
  }
}

// Every call that finds the GPU lost reports it.
TEST_F(GpuBackendTest, AnyCallThatFindsTheGpuLostReportsIt) {
  using Call = std::function<absl::Status(LanguageModel&)>;
  const std::string page(MakeModel()->info().page_bytes.window, 'x');
  const std::vector<Call> calls = {
      [](LanguageModel& model) { return model.CopyPage(PageKind::kWindow, 0, 1); },
      [](LanguageModel& model) {
        return model.ReadPage(PageKind::kWindow, 0, {0, 1}).status();
      },
      [&](LanguageModel& model) { return model.WritePage(PageKind::kWindow, 0, page); },
      [](LanguageModel& model) { return model.AllocateCache({.window = 2, .segment = 2, .open_chunk = 1}); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    losses_.clear();
    loss_->SetListener([this](const std::string& why) { losses_.push_back(why); });
    const std::unique_ptr<LanguageModel> model = MakeModel();
    ASSERT_TRUE(model->AllocateCache({.window = 2, .segment = 2, .open_chunk = 1}).ok());
    devices_.back()->FailAfter(0, DeviceFault::kLost);
    ASSERT_FALSE(devices_.back()->Synchronize().ok());
    EXPECT_EQ(calls[i](*model).code(), absl::StatusCode::kInternal) << i;
    EXPECT_THAT(losses_, ElementsAre(HasSubstr(devices_.back()->facts().name))) << i;
  }
}

TEST_F(GpuBackendTest, AGpuThatIsLostWhileAModelIsMadeIsReported) {
  const EmulatedBackends backends(
      {}, [](EmulatedDevice& device) { device.FailAfter(0, DeviceFault::kLost); }, loss_);
  const LanguageModelWeights weights = RandomWeightsOn(OnDevice("", kWorker, &backends), config_, 5);
  EXPECT_EQ(weights.NewReplica(kWorker).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(losses_.size(), 1u);
}

TEST_F(GpuBackendTest, AGpuThatIsLostWhilePagesOrGraphsAreMadeIsReported) {
  const CachePages pages = {.window = 2, .segment = 2, .open_chunk = 1};
  int64_t calls = 0;
  {
    const std::unique_ptr<LanguageModel> model = MakeModel({}, 1);
    const int64_t before = devices_.back()->calls();
    ASSERT_TRUE(model->AllocateCache(pages).ok());
    calls = devices_.back()->calls() - before;
  }
  ASSERT_GT(calls, 10);
  for (int64_t call = 0; call < calls; ++call) {
    losses_.clear();
    loss_->SetListener([this](const std::string& why) { losses_.push_back(why); });
    const std::unique_ptr<LanguageModel> model = MakeModel({}, 1);
    devices_.back()->FailAfter(call, DeviceFault::kLost);
    EXPECT_EQ(model->AllocateCache(pages).code(), absl::StatusCode::kInternal) << call;
    EXPECT_EQ(losses_.size(), 1u) << call;
  }
}

// The old pages go first: a worker's share of the memory has no room for both.
TEST_F(GpuBackendTest, ACacheIsReplacedByOneAsLarge) {
  const std::unique_ptr<LanguageModel> model = MakeModel({.memory_bytes = int64_t{8} << 20});
  const CachePages max = {
      .window = (int64_t{4} << 20) / model->info().page_bytes.window, .segment = 1, .open_chunk = 1};
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = model->AllocateCache(max);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(GpuBackendTest, ACacheForWhichThereIsNoMemoryIsRefusedAndASmallerOneServes) {
  const std::unique_ptr<LanguageModel> model = MakeModel({.memory_bytes = int64_t{8} << 20});
  CachePages pages = core::PagesForStreams(model->info(), 1);
  pages.window = (int64_t{8} << 20) / model->info().page_bytes.window;
  EXPECT_EQ(core::PagedCache::Create(*model, pages).status().code(), absl::StatusCode::kResourceExhausted);
  const auto cache = core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_TRUE(ReadFirstTokens(*model, **cache).ok());
}

TEST_F(GpuBackendTest, AReplicaHasAStreamOfItsOwnAndGivesTheSameBits) {
  const EmulatedBackends backends({}, [this](EmulatedDevice& device) { devices_.push_back(&device); });
  const LanguageModelWeights weights = RandomWeightsOn(OnDevice("", kWorker, &backends), config_, 5);
  const std::unique_ptr<LanguageModel> model = *weights.NewReplica(kWorker), replica = *weights.NewReplica(kWorker);
  ASSERT_EQ(devices_.size(), 2u);
  const auto cache = *core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  const auto other_cache = *core::PagedCache::Create(*replica, core::PagesForStreams(model->info(), 1));
  devices_[0]->FailAfter(0, DeviceFault::kLost);
  EXPECT_FALSE(ReadFirstTokens(*model, *cache).ok());
  const std::unique_ptr<LanguageModel> other = MakeModel();
  const auto third_cache = *core::PagedCache::Create(*other, core::PagesForStreams(model->info(), 1));
  EXPECT_EQ(*ReadFirstTokens(*replica, *other_cache), *ReadFirstTokens(*other, *third_cache));
}

TEST_F(GpuBackendTest, AReplicaForWhichThereIsNoMemoryIsRefusedAsThat) {
  int opened = 0;
  const EmulatedBackends backends({}, [&opened](EmulatedDevice& device) {
    if (opened++ > 0) device.FailAfter(0, DeviceFault::kOutOfMemory);
  });
  const LanguageModelWeights weights = RandomWeightsOn(OnDevice("", kWorker, &backends), config_, 5);
  const auto first = weights.NewReplica(kWorker);
  EXPECT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(weights.NewReplica(kWorker).status().code(), absl::StatusCode::kResourceExhausted);
}

// Those of the capabilities 8.6, 8.9 and 12.0. Graphs have tiles from 8 rows on.
TEST_F(GpuBackendTest, ChipsWithLittleSharedMemoryServeFloat32HeadsOf64Channels) {
  config_.heads = 1;
  config_.model_width = 64;
  const std::unique_ptr<LanguageModel> model = MakeModel({.max_shared_bytes = kSharedBytesOfSmallChips}, 8);
  const auto cache = core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1));
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_GT(devices_.back()->kernels_run().at("AttendInOneStage"), 0);
  EXPECT_EQ(devices_.back()->kernels_run().count("AttendFromTiles"), 0);
}

TEST_F(GpuBackendTest, AModelThatNeedsMoreSharedMemoryThanTheChipHasIsRefused) {
  config_.heads = 1;
  config_.model_width = 72;
  const std::unique_ptr<LanguageModel> model = MakeModel({.max_shared_bytes = kSharedBytesOfSmallChips}, 8);
  const absl::Status status = model->AllocateCache({.window = 1, .segment = 1, .open_chunk = 1});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kernel AttendFromTiles needs 149504 bytes of shared memory for a block at this model's "
                        "widths; emulated allows 101376; serve the model on another GPU"));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(GpuBackendTest, AChipWithoutTheKernelsInstructionsIsRefusedByName) {
  const EmulatedBackends backends({.major = 7, .minor = 5});
  const LanguageModelWeights weights = RandomWeightsOn(OnDevice("", kWorker, &backends), config_, 5);
  const absl::Status status = weights.NewReplica(kWorker).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("emulated has compute capability 7.5; at least 8.0 is needed"));
}

TEST_F(GpuBackendTest, HeadsThatAreTooWideAreNamed) {
  LanguageModelConfig config = SmallConfig();
  config.heads = 1;
  config.model_width = 136;
  Decoder decoder = RandomDecoder(config, 5, at::kFloat);
  const absl::Status status = EmulatedBackends().Prepare(std::move(decoder), kWorker, [] {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("heads are 136 wide; a GPU supports at most 128"));
}

}  // namespace longshort::models::gpu_backend_test

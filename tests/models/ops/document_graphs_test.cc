// Runs batches of documents as graphs of simple layers, on an emulated device.

#include <memory>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "tests/base/status_matchers.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::document_graphs_test {

using ::testing::ElementsAreArray;

constexpr int64_t kMaxRows = 192, kMaxDocuments = 4;

class DocumentGraphsTest : public ::testing::Test {
 protected:
  DocumentGraphsTest() {
    const auto open = [this]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> {
      std::unique_ptr<EmulatedDevice> opened = MakeEmulatedDevice();
      device_ = opened.get();
      return opened;
    };
    attention_ = MakeGpuItemAttention({.tensors = at::kCPU,
                                       .open = open,
                                       .loss = nullptr,
                                       .graphs = {.documents = kMaxDocuments, .document_rows = kMaxRows}},
                                      8)
                     .value();
  }

  // Logits [documents, 1]: sums of ids. Records the padded shapes that it was called with, "rows x documents".
  GpuItemAttention::DocumentLayers Sums() {
    return [this](const DocumentTokens& documents) {
      shapes_.push_back(absl::StrCat(documents.ids.size(0), " x ", documents.documents));
      return attention_->MeanOfRows(documents.ids.to(at::kFloat).unsqueeze(1), /*length=*/1);
    };
  }
  // Whether a graph ran documents of these lengths. Each document has its own id.
  bool RunsAsGraph(const std::vector<int64_t>& lengths) {
    std::vector<std::vector<int32_t>> documents;
    std::vector<float> expected;
    for (const int64_t length : lengths) {
      documents.emplace_back(length).assign(length, ++id_);
      expected.push_back(static_cast<float>(length) * static_cast<float>(id_));
    }
    const std::vector<absl::Span<const int32_t>> spans(documents.begin(), documents.end());
    const int64_t replays = device_->replays();
    shapes_.clear();
    EXPECT_THAT(attention_->RunDocuments(PackIds(spans, {.size = 4}), Sums(), /*prepared=*/true),
                ElementsAreArray(expected))
        << absl::StrJoin(lengths, ", ");
    return device_->replays() > replays;
  }

  EmulatedDevice* device_ = nullptr;
  std::vector<std::string> shapes_;
  int32_t id_ = 0;
  std::unique_ptr<GpuItemAttention> attention_;
};

TEST_F(DocumentGraphsTest, ABatchTakesTheSmallestThatHasRoomAndNothingOfBatchesBefore) {
  ASSERT_THAT(attention_->PrepareDocuments(/*item_documents=*/1, {.size = 4}, Sums()), IsOk());
  EXPECT_EQ(device_->replays(), 9);  // of 192, 128, 64 rows, each of 4, 2, 1 documents
  // A sum of more than 128 rows, or of more documents, is one of several splits. The device calls the layers when it
  // runs a graph, so they record which graph ran.
  const struct {
    std::vector<int64_t> lengths;
    std::string shape;
  } batches[] = {
      {{100, 20, 70}, "192 x 4"}, {{192}, "192 x 1"}, {{129, 1}, "192 x 2"}, {{128}, "128 x 1"},
      {{1, 1, 1, 61}, "64 x 4"},  {{64}, "64 x 1"},   {{1}, "64 x 1"},       {{65}, "128 x 1"},
  };
  for (const auto& [lengths, shape] : batches) {
    EXPECT_TRUE(RunsAsGraph(lengths)) << shape;
    EXPECT_THAT(shapes_, ::testing::Each(shape));
    EXPECT_FALSE(shapes_.empty());
  }
}

TEST_F(DocumentGraphsTest, LargerBatchesAreTheLayers) {
  ASSERT_THAT(attention_->PrepareDocuments(/*item_documents=*/1, {.size = 4}, Sums()), IsOk());
  EXPECT_FALSE(RunsAsGraph({193}));
  EXPECT_FALSE(RunsAsGraph({1, 2, 3, 4, 5}));
  EXPECT_TRUE(RunsAsGraph({5, 4}));  // larger batches did not take the graphs' memory
}

}  // namespace longshort::models::document_graphs_test

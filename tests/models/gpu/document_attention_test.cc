// Attention of packed documents on the tested device, against plain sums in double precision.

#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "tests/models/gpu/document_tiles.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::gpu_document_attention_test {

// A document's windows, and the seed of its rows.
struct TestedDocument {
  std::vector<WindowSegment> segments;
  uint64_t seed = 0;

  int64_t rows() const { return segments.back().end_query; }
};

// As WindowRule cuts a document without masked tokens.
TestedDocument Document(int64_t rows, int64_t size, uint64_t seed) {
  TestedDocument document = {.segments = {}, .seed = seed};
  const int64_t margin = size == 0 ? 0 : std::max<int64_t>(size / 2, 1), step = std::max<int64_t>(size, 1);
  for (int64_t row = 0; row < rows; row += step) {
    document.segments.push_back({.first_query = row,
                                 .end_query = std::min(rows, row + step),
                                 .first_key = std::max<int64_t>(0, row - margin),
                                 .end_key = std::min(rows, row + step + margin)});
  }
  return document;
}
// Rows that see the shared vectors only.
TestedDocument Windowless(int64_t rows, uint64_t seed) {
  return {.segments = {{.first_query = 0, .end_query = rows}}, .seed = seed};
}

struct Model {
  int heads = 2;
  int head_width = 16;
  int shared = 3;
  int padding = 8;  // elements between rows; odd: rows are not read by pieces
  int odd = -1;     // which of the six kinds of rows has an element more between rows than the others
};

template <typename Element>
class Problem final {
 public:
  Problem(GpuDevice& device, const Model& model, const std::vector<TestedDocument>& documents)
      : model_(model), documents_(documents), arrays_(device) {
    for (const TestedDocument& document : documents) {
      std::mt19937_64 random(document.seed);
      tiles_.Add(document.segments);
      for (TestRows<Element>* const part : {&queries_, &keys_, &values_}) part->Add(document.rows(), random);
      for (TestRows<Element>* const part : {&shared_keys_, &shared_values_}) part->Add(model.shared, random);
      output_.AddNothing(document.rows());
    }
    attention_ = {.attention = {.element = kTypeOf<Element>,
                                .heads = model.heads,
                                .head_width = model.head_width,
                                .scale = kScale,
                                .queries = queries_.Put(),
                                .keys = keys_.Put(),
                                .values = values_.Put(),
                                .shared = model.shared,
                                .shared_keys = shared_keys_.Put(),
                                .shared_values = shared_values_.Put(),
                                .output = output_.Put()},
                  .tiles = arrays_.Put(tiles_.tiles),
                  .tile_count = static_cast<int>(tiles_.tiles.size()),
                  .windows = arrays_.Put(tiles_.windows)};
  }

  // [rows][heads * head_width]
  std::vector<float> Run() {
    attention_.attention.output = output_.Put();
    arrays_.Launch(DocumentAttentionCall(attention_));
    return output_.Get();
  }
  void Check(const std::vector<float>& output) const {
    int64_t first = 0;
    for (size_t d = 0; d < documents_.size(); ++d) {
      for (const WindowSegment& segment : documents_[d].segments) {
        for (int64_t query = segment.first_query; query < segment.end_query; ++query) {
          for (int head = 0; head < model_.heads; ++head) {
            const int channel = head * model_.head_width;
            std::vector<SeenVector> seen;
            for (int64_t i = d * model_.shared; i < static_cast<int64_t>(d + 1) * model_.shared; ++i) {
              seen.push_back({shared_keys_.Row(i) + channel, shared_values_.Row(i) + channel});
            }
            for (int64_t i = first + segment.first_key; i < first + segment.end_key; ++i) {
              seen.push_back({keys_.Row(i) + channel, values_.Row(i) + channel});
            }
            const std::vector<double> expected =
                PlainAttention(queries_.Row(first + query) + channel, model_.head_width, kScale, seen);
            for (int c = 0; c < model_.head_width; ++c) {
              ASSERT_NEAR(output[(first + query) * width_ + channel + c], expected[c],
                          AttentionBound<Element>(expected[c]))
                  << "document " << d << ", row " << query << ", head " << head << ", channel " << c;
            }
          }
        }
      }
      first += documents_[d].rows();
    }
  }

 private:
  static constexpr float kScale = 0.3f;

  const Model model_;
  const std::vector<TestedDocument> documents_;
  DeviceArrays arrays_;
  DocumentTiles tiles_;
  int64_t Stride(int kind) const { return width_ + model_.padding + (model_.odd == kind ? 1 : 0); }

  const int64_t width_ = model_.heads * model_.head_width;
  TestRows<Element> queries_{arrays_, width_, Stride(0)}, keys_{arrays_, width_, Stride(1)},
      values_{arrays_, width_, Stride(2)}, shared_keys_{arrays_, width_, Stride(3)},
      shared_values_{arrays_, width_, Stride(4)}, output_{arrays_, width_, Stride(5)};
  DocumentAttention attention_ = {};
};

template <typename Element>
class GpuDocumentAttention : public ::testing::Test {
 protected:
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuDocumentAttention, Elements);

TYPED_TEST(GpuDocumentAttention, AttendsInDocumentsOfAnyLengths) {
  // One token, less than a tile, a tile, one more, windows that a tile cuts, and a window wider than the document.
  Problem<TypeParam> problem(*this->device_, {},
                             {Document(1, 16, 1), Document(20, 16, 2), Document(64, 32, 3), Document(65, 10, 4),
                              Document(150, 100, 5), Document(7, 64, 6)});
  problem.Check(problem.Run());
}

TYPED_TEST(GpuDocumentAttention, MeetsPlainSumsForAnyShape) {
  const std::vector<TestedDocument> documents = {Document(5, 2, 1), Document(70, 8, 2)};
  for (const Model& model : {Model{.heads = 1, .head_width = 1, .shared = 1, .padding = 0},
                             Model{.heads = 3, .head_width = 12, .shared = 0, .padding = 4},
                             Model{.heads = 1, .head_width = 33, .shared = 5, .padding = 2},
                             Model{.heads = 1, .head_width = 64, .shared = 1, .padding = 0},
                             Model{.heads = 1, .head_width = 128, .shared = 2, .padding = 8},
                             Model{.heads = 1, .head_width = 100, .shared = 2, .padding = 1}}) {
    Problem<TypeParam> problem(*this->device_, model, documents);
    problem.Check(problem.Run());
  }
}

TYPED_TEST(GpuDocumentAttention, ReadsByPiecesOnlyWhereAllRowsAllowIt) {
  for (const int odd : {0, 1, 2, 3, 4, 5}) {
    Problem<TypeParam> problem(*this->device_, {.heads = 1, .odd = odd}, {Document(5, 2, 1)});
    problem.Check(problem.Run());
  }
}

// 130 shared vectors: more than two blocks of them, and the window's keys begin in the midst of one.
TYPED_TEST(GpuDocumentAttention, SeesManySharedVectors) {
  Problem<TypeParam> problem(*this->device_, {.heads = 1, .head_width = 8, .shared = 130},
                             {Document(40, 16, 1), Document(3, 16, 2)});
  problem.Check(problem.Run());
}

TYPED_TEST(GpuDocumentAttention, NeedsNoWindow) {
  Problem<TypeParam> nothing(*this->device_, {.shared = 2}, {Windowless(66, 1), Windowless(1, 2)});
  nothing.Check(nothing.Run());
  Problem<TypeParam> itself(*this->device_, {.shared = 0}, {Document(66, 0, 1), Document(1, 0, 2)});
  itself.Check(itself.Run());
}

// Masked tokens have no rows: segments are of any length, and see any range; some see shared vectors only.
TYPED_TEST(GpuDocumentAttention, FollowsAnySegments) {
  const TestedDocument ragged = {.segments = {{.first_query = 0, .end_query = 3, .first_key = 0, .end_key = 1},
                                              {.first_query = 3, .end_query = 50, .first_key = 20, .end_key = 90},
                                              {.first_query = 50, .end_query = 51, .first_key = 40, .end_key = 40},
                                              {.first_query = 51, .end_query = 90, .first_key = 89, .end_key = 90}},
                                 .seed = 1};
  Problem<TypeParam> problem(*this->device_, {}, {Document(3, 4, 2), ragged});
  problem.Check(problem.Run());
}

// Without shared vectors: of the tile's first 64 keys, its last rows see none.
TYPED_TEST(GpuDocumentAttention, ARowMaySeeNothingOfABlockOfKeys) {
  const TestedDocument ragged = {.segments = {{.first_query = 0, .end_query = 3, .first_key = 0, .end_key = 1},
                                              {.first_query = 3, .end_query = 50, .first_key = 20, .end_key = 90},
                                              {.first_query = 50, .end_query = 90, .first_key = 80, .end_key = 90}},
                                 .seed = 1};
  Problem<TypeParam> problem(*this->device_, {.heads = 1, .shared = 0}, {ragged});
  problem.Check(problem.Run());
}

TYPED_TEST(GpuDocumentAttention, ADocumentsBitsDependOnItOnly) {
  const TestedDocument a = Document(90, 16, 1), b = Document(37, 16, 2), c = Document(1, 16, 3);
  const std::vector<float> alone = Problem<TypeParam>(*this->device_, {}, {a}).Run();
  std::vector<float> together = Problem<TypeParam>(*this->device_, {}, {b, c, a, b}).Run();
  const size_t before = (b.rows() + c.rows()) * alone.size() / a.rows();
  together.erase(together.begin(), together.begin() + before);
  together.resize(alone.size());
  EXPECT_EQ(together, alone);
}

TYPED_TEST(GpuDocumentAttention, IsTheSameInEveryOrderOfThreads) {
  std::vector<float> first;
  for (const int padding : {8, 1}) {
    for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
      SetEmulation(*this->device_, options);
      Problem<TypeParam> problem(*this->device_, {.heads = 1, .head_width = 8, .padding = padding},
                                 {Document(80, 40, 1)});
      const std::vector<float> output = problem.Run();
      problem.Check(output);
      if (first.empty()) first = output;
      EXPECT_EQ(output, first) << NameOf(options);
    }
  }
}

TEST(DocumentTiles, AreCutFromEachDocumentsFirstRow) {
  DocumentTiles tiles;
  tiles.Add(Document(70, 40, 1).segments);
  tiles.Add(Windowless(2, 1).segments);
  // Row 64 sees no window.
  tiles.Add(std::vector<WindowSegment>{{.first_query = 0, .end_query = 64, .first_key = 0, .end_key = 64},
                                       {.first_query = 64, .end_query = 65},
                                       {.first_query = 65, .end_query = 70, .first_key = 60, .end_key = 70}});
  ASSERT_EQ(tiles.tiles.size(), 5);
  const auto is = [](const DocumentTile& tile, const std::vector<int64_t>& fields) {
    EXPECT_EQ((std::vector<int64_t>{tile.first_row, tile.rows, tile.first_key, tile.keys, tile.document}), fields);
  };
  is(tiles.tiles[0], {0, 64, 0, 70, 0});
  is(tiles.tiles[1], {64, 6, 20, 50, 0});  // rows 64 .. 69 are of the segment from 40 on, which sees 20 more before
  is(tiles.tiles[2], {70, 2, 70, 0, 1});
  is(tiles.tiles[4], {136, 6, 132, 10, 2});
  EXPECT_EQ(tiles.windows[69].begin, 20);
  EXPECT_EQ(tiles.windows[69].end, 70);
}

}  // namespace longshort::models::cuda::gpu_document_attention_test

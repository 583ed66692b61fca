// Places of packed documents' rows on the tested device, against a plain search among all rows.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/ops/document_attention/document_places_kernels.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/document_tiles.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::document_places_test {

using Positions = std::vector<int32_t>;

Positions Count(int32_t rows) {
  Positions positions(rows);
  for (int32_t i = 0; i < rows; ++i) positions[i] = i;
  return positions;
}
// Without every third position and the first ones.
Positions WithGaps(int32_t end) {
  Positions positions;
  for (int32_t i = 2; i < end; ++i) {
    if (i % 3 != 0) positions.push_back(i);
  }
  return positions;
}

struct Rule {
  int segment = 4;  // 0: none
  int margin = 2;
};

// Each row sees the rows that a search finds.
std::vector<WindowSegment> Search(const Positions& positions, const Rule& rule) {
  const auto rows = static_cast<int64_t>(positions.size());
  std::vector<WindowSegment> segments;
  for (int64_t row = 0; row < rows; ++row) {
    WindowSegment seen{.first_query = row, .end_query = row + 1, .first_key = row, .end_key = row};
    if (rule.segment > 0) {
      const int64_t begin = positions[row] / rule.segment * rule.segment;
      const auto before = [&](int64_t position) {
        return std::count_if(positions.begin(), positions.end(), [&](int32_t other) { return other < position; });
      };
      seen.first_key = before(begin - rule.margin);
      seen.end_key = before(begin + rule.segment + rule.margin);
    }
    segments.push_back(seen);
  }
  return segments;
}

class DocumentPlacesTest : public ::testing::Test {
 protected:
  // Places the documents in a bucket with so many rows, documents and tiles more than they have.
  void Check(const std::vector<Positions>& documents, const Rule& rule, bool uploads_positions, int64_t more_rows = 0,
             int64_t more_documents = 0, int64_t more_tiles = 0) {
    SCOPED_TRACE(absl::StrCat(documents.size(), " documents, segments of ", rule.segment, ", ", more_rows, " more"));
    DeviceArrays arrays(*device_);
    std::vector<ItemRows> ranges;
    std::vector<DocumentStart> starts;
    Positions all;
    DocumentTiles expected;
    const auto add_range = [&](int64_t rows) {
      ranges.push_back({.first_row = static_cast<int64_t>(all.size()), .rows = rows});
      starts.push_back({.tile = static_cast<int32_t>(expected.tiles.size()), .has_positions = uploads_positions});
    };
    for (const Positions& positions : documents) {
      add_range(static_cast<int64_t>(positions.size()));
      expected.Add(Search(positions, rule));
      all.insert(all.end(), positions.begin(), positions.end());
    }
    for (int64_t i = 0; i < more_documents; ++i) add_range(0);
    const auto rows = static_cast<int64_t>(all.size()), bucket_rows = rows + more_rows;
    const int64_t tile_count = static_cast<int64_t>(expected.tiles.size()) + more_tiles;
    const DocumentsToPlace place = {
        .documents = arrays.Put(ranges),
        .starts = arrays.Put(starts),
        .document_count = static_cast<int>(ranges.size()),
        .own_positions = uploads_positions ? arrays.Put(all) : arrays.Make<int32_t>(bucket_rows),
        .segment = rule.segment,
        .margin = rule.margin,
        .rows = bucket_rows,
        .positions = arrays.Make<int64_t>(bucket_rows),
        .windows = arrays.Make<WindowRows>(bucket_rows),
        .tiles = arrays.Make<DocumentTile>(tile_count),
        .tile_count = static_cast<int>(tile_count)};
    arrays.Launch(PlaceDocumentsCall(place));

    std::vector<int64_t> expected_positions(all.begin(), all.end());
    expected_positions.resize(bucket_rows, 0);
    EXPECT_EQ(arrays.Get(place.positions, bucket_rows), expected_positions);
    const std::vector<WindowRows> windows = arrays.Get(place.windows, bucket_rows);
    for (int64_t row = 0; row < rows; ++row) {
      EXPECT_EQ(windows[row].begin, expected.windows[row].begin) << "row " << row;
      EXPECT_EQ(windows[row].end, expected.windows[row].end) << "row " << row;
    }
    const std::vector<DocumentTile> tiles = arrays.Get(place.tiles, tile_count);
    expected.tiles.resize(tile_count);
    for (int64_t i = 0; i < tile_count; ++i) {
      const DocumentTile &tile = tiles[i], &other = expected.tiles[i];
      EXPECT_EQ(tile.rows, other.rows) << "tile " << i;
      if (other.rows == 0) continue;
      EXPECT_EQ(tile.first_row, other.first_row) << "tile " << i;
      EXPECT_EQ(tile.keys, other.keys) << "tile " << i;
      EXPECT_EQ(tile.first_key, other.first_key) << "tile " << i;
      EXPECT_EQ(tile.document, other.document) << "tile " << i;
    }
  }

  const std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};

// Windows that tiles cut, larger windows than documents, each row alone, and none.
constexpr Rule kRules[] = {{4, 2}, {5, 2}, {1, 1}, {100, 50}, {1, 0}, {0, 0}};

TEST_F(DocumentPlacesTest, CountsPositionsOfDocumentsOfAnyLengths) {
  for (const Rule& rule : kRules) {
    Check({Count(1), Count(64), {}, Count(65), Count(200), {}}, rule, /*uploads_positions=*/false);
    Check({Count(70)}, rule, /*uploads_positions=*/false);
  }
}

TEST_F(DocumentPlacesTest, SearchesAmongPositionsThatAreUploaded) {
  for (const Rule& rule : kRules) Check({WithGaps(200), Count(70), WithGaps(3)}, rule, /*uploads_positions=*/true);
}

// A graph's bucket is larger than its batch.
TEST_F(DocumentPlacesTest, PadsRowsAndTilesBehindTheLastDocument) {
  Check({Count(65), Count(3)}, {}, false, /*more_rows=*/60, /*more_documents=*/2, /*more_tiles=*/1);
  Check({Count(65), Count(3)}, {}, false, /*more_rows=*/124, /*more_documents=*/0, /*more_tiles=*/3);
  Check({}, {}, false, /*more_rows=*/64, /*more_documents=*/1, /*more_tiles=*/2);
}

}  // namespace longshort::models::cuda::document_places_test

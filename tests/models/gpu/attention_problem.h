// A random step of attention on a device, and its expected result from plain sums in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/causal_attention/query_tiles.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/random_elements.h"

namespace longshort::models::cuda {

struct AttentionModel {
  int heads = 2;
  int head_width = 20;
  int window_length = 70;
  int chunk_size = 4;
  int chunk_rank = 1;
  int memory_length = 320;
  int segment_length = 160;
  bool has_query_bias = false;
  int64_t first_page = 0;  // pages have the numbers from here on
};

// Rows of one sequence.
struct TestedSlice {
  int64_t position = 0;
  int64_t segment_start = 0;
  int64_t count = 1;
};

// Element: type of pages. Row: type of queries and output.
template <typename Element, typename Row>
class AttentionProblem final {
 public:
  AttentionProblem(GpuDevice& device, const AttentionModel& model, const std::vector<TestedSlice>& slices,
                   uint64_t seed)
      : model_(model), slices_(slices), random_(seed), arrays_(device) {
    const int heads = model.heads, width = model.head_width;
    max_shared_bytes_ = device.facts().max_shared_bytes;
    memory_vectors_ = model.memory_length / model.chunk_size * model.chunk_rank;
    const int chunk_distances =
        ((model.memory_length + model.segment_length) / model.chunk_size - 1) * model.chunk_rank;
    page_elements_ = LayerElements(heads, width) + 64;
    zero_page_ = Page({0, kPageRows});
    for (const TestedSlice& slice : slices) AddRows(slice);
    rows_ = static_cast<int64_t>(positions_.size());
    stride_ = heads * width + 3;
    queries_ = RandomElements<Row>(random_, rows_ * stride_);
    window_bias_ = RandomElements<float>(random_, heads * width);
    relative_bias_ = RandomElements<float>(random_, heads * width);
    query_bias_ = std::vector<float>(heads * width, 0.0f);
    if (model.has_query_bias) query_bias_ = RandomElements<float>(random_, heads * width);
    window_distances_ = Distances(model.window_length);
    chunk_distances_ = Distances(chunk_distances);

    const Element* const pages = Before(arrays_.Put(pages_), model.first_page * page_elements_);
    const Element* const zero_page = arrays_.Put(zero_page_);
    const auto put = [&](const Table& table) {
      return KeyPages{.table = {.first_pages = arrays_.Put(table.first_pages),
                                .first_ids = arrays_.Put(table.first_ids),
                                .ids = arrays_.Put(table.ids)},
                      .pages = pages,
                      .zero_page = zero_page};
    };
    output_ = arrays_.Make<Row>(rows_ * stride_);
    attention_ = {.element = kTypeOf<Element>,
                  .row = kTypeOf<Row>,
                  .heads = heads,
                  .head_width = width,
                  .window_length = model.window_length,
                  .chunk_size = model.chunk_size,
                  .chunk_rank = model.chunk_rank,
                  .memory_vectors = memory_vectors_,
                  .window_bias = arrays_.Put(window_bias_),
                  .relative_bias = arrays_.Put(relative_bias_),
                  .query_bias = model.has_query_bias ? arrays_.Put(query_bias_) : nullptr,
                  .window_distances = arrays_.Put(window_distances_),
                  .chunk_distances = arrays_.Put(chunk_distances_),
                  .chunk_distance_count = chunk_distances,
                  .positions = arrays_.Put(positions_),
                  .segment_starts = arrays_.Put(segment_starts_),
                  .row_slices = arrays_.Put(row_slices_),
                  .memory = put(memory_),
                  .segment = put(segment_),
                  .window = put(window_),
                  .page_elements = page_elements_,
                  .queries = arrays_.Put(queries_),
                  .query_scale = kQueryScale,
                  .query_stride = stride_,
                  .output = output_,
                  .output_stride = stride_};
  }

  int64_t rows() const { return rows_; }
  // As if this were the limit of the chip for a thread block.
  void LimitSharedBytes(int64_t bytes) { max_shared_bytes_ = bytes; }

  // Output [rows][heads * head_width] of DecodeAttention for these rows; NaN in the others.
  std::vector<float> Decode(const std::vector<int64_t>& rows) {
    Forget();
    LaunchDecode(rows);
    return Output();
  }
  std::vector<float> DecodeAll() {
    std::vector<int64_t> rows(rows_);
    for (int64_t row = 0; row < rows_; ++row) rows[row] = row;
    return Decode(rows);
  }

  // Output of PromptAttention.
  std::vector<float> Prompt(const std::vector<int64_t>& tiles) {
    Forget();
    LaunchPrompt(tiles);
    return Output();
  }
  std::vector<float> PromptAll() { return Prompt(Tiles(1).tiles); }

  // Output of both kernels, each for its rows, as in a backend.
  std::vector<float> Attend(int64_t min_tile_rows) {
    const QueryTiles tiles = Tiles(min_tile_rows);
    Forget();
    LaunchDecode(tiles.rows);
    LaunchPrompt(tiles.tiles);
    return Output();
  }

  // Row by row, [heads * head_width].
  std::vector<double> Expected(int64_t row) const {
    std::vector<double> output;
    for (int head = 0; head < model_.heads; ++head) {
      const std::vector<double> of_head = ExpectedOfHead(row, head);
      output.insert(output.end(), of_head.begin(), of_head.end());
    }
    return output;
  }
  // The largest difference from it.
  double Error(const std::vector<float>& output) const {
    const int64_t columns = model_.heads * model_.head_width;
    double largest = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const std::vector<double> expected = Expected(row);
      for (int64_t c = 0; c < columns; ++c) {
        const double difference = std::abs(expected[c] - output[row * columns + c]);
        largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
      }
    }
    return largest;
  }

 private:
  static constexpr float kQueryScale = 0.75f;

  struct Range {
    int64_t begin, end;
  };
  struct Table {
    std::vector<int64_t> first_pages, first_ids = {0}, ids;
  };

  static int64_t FloorOf(int64_t key) { return key >= 0 ? key / kPageRows : -((kPageRows - 1 - key) / kPageRows); }
  int64_t VectorOf(int64_t position) const { return position / model_.chunk_size * model_.chunk_rank; }
  int64_t padded() const { return PaddedHeadWidth(model_.head_width); }

  // A page whose rows outside of `real` are NaN.
  std::vector<Element> Page(const Range& real) {
    std::vector<Element> page(page_elements_, ElementOf<Element>(std::numeric_limits<float>::quiet_NaN()));
    for (int part = 0; part < 2 * model_.heads; ++part) {
      const std::vector<Element> rows = RandomElements<Element>(random_, kPageRows * padded());
      for (int64_t row = real.begin; row < real.end; ++row) {
        for (int64_t c = 0; c < padded(); ++c) {
          page[(part * kPageRows + row) * padded() + c] =
              c < model_.head_width ? rows[row * padded() + c] : ElementOf<Element>(0);
        }
      }
    }
    return page;
  }
  void AddPages(Table& table, const Range& keys) {
    const int64_t first = FloorOf(keys.begin), end = keys.begin < keys.end ? FloorOf(keys.end - 1) + 1 : first;
    table.first_pages.push_back(first);
    for (int64_t page = first; page < end; ++page) {
      if (page < 0) {
        table.ids.push_back(-1);
        continue;
      }
      table.ids.push_back(model_.first_page + static_cast<int64_t>(pages_.size()) / page_elements_);
      const std::vector<Element> content = Page({std::clamp<int64_t>(keys.begin - page * kPageRows, 0, kPageRows),
                                                 std::clamp<int64_t>(keys.end - page * kPageRows, 0, kPageRows)});
      pages_.insert(pages_.end(), content.begin(), content.end());
    }
    table.first_ids.push_back(static_cast<int64_t>(table.ids.size()));
  }
  void AddRows(const TestedSlice& slice) {
    const int64_t end = slice.position + slice.count, length = model_.segment_length;
    for (int64_t position = slice.position; position < end; ++position) {
      positions_.push_back(position);
      segment_starts_.push_back(position - (position - slice.segment_start) % length);
      row_slices_.push_back(static_cast<int64_t>(window_.first_pages.size()));
    }
    const int64_t segment_vector = VectorOf(slice.segment_start);
    AddPages(window_, {slice.position - model_.window_length + 1, end});
    AddPages(memory_, {segment_vector - memory_vectors_, VectorOf(end)});
    AddPages(segment_, {segment_vector, VectorOf(end)});
  }
  // [heads][count][padded]
  std::vector<Element> Distances(int64_t count) {
    std::vector<Element> table = RandomElements<Element>(random_, model_.heads * count * padded());
    for (size_t i = 0; i < table.size(); ++i) {
      if (static_cast<int64_t>(i) % padded() >= model_.head_width) table[i] = ElementOf<Element>(0);
    }
    return table;
  }

  QueryTiles Tiles(int64_t min) const { return TilesOf(row_slices_, segment_starts_, min); }
  void LaunchDecode(const std::vector<int64_t>& rows) {
    const int blocks = static_cast<int>(MaxKeyBlocks(model_.window_length, memory_vectors_,
                                                     model_.segment_length / model_.chunk_size * model_.chunk_rank));
    const auto count = static_cast<int64_t>(rows.size()) * model_.heads * blocks;
    const DecodeAttention decode = {.attention = attention_,
                                    .rows = arrays_.Put(rows),
                                    .row_count = static_cast<int>(rows.size()),
                                    .max_blocks = blocks,
                                    .partial_outputs = arrays_.Make<float>(count * PaddedHeadWidth(model_.head_width)),
                                    .partial_sums = arrays_.Make<float>(count * 2)};
    arrays_.Launch(AttendToBlocksCall(decode));
    arrays_.Launch(MergeBlocksCall(decode));
  }
  void LaunchPrompt(const std::vector<int64_t>& tiles) {
    arrays_.Launch(PromptAttentionCall(
        {.attention = attention_, .tiles = arrays_.Put(tiles), .tile_count = static_cast<int>(tiles.size() / 2)},
        max_shared_bytes_));
  }

  void Forget() { arrays_.Set(output_, std::vector<Row>(rows_ * stride_, ElementOf<Row>(NAN))); }
  std::vector<float> Output() {
    const std::vector<Row> all = arrays_.Get(output_, rows_ * stride_);
    std::vector<float> output;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t c = 0; c < stride_; ++c) {
        const float value = ToFloat(all[row * stride_ + c]);
        if (c < model_.heads * model_.head_width) {
          output.push_back(value);
        } else {
          EXPECT_TRUE(std::isnan(value)) << "a write past row " << row;
        }
      }
    }
    return output;
  }

  // The part of a page with this key: its keys, or its values, for a head.
  const Element* RowOf(const Table& table, int64_t slice, int64_t key, int head, int part) const {
    const int64_t page = FloorOf(key);
    const int64_t id = table.ids[table.first_ids[slice] + page - table.first_pages[slice]];
    const Element* const start = id < 0 ? zero_page_.data() : pages_.data() + (id - model_.first_page) * page_elements_;
    return start + ((2 * head + part) * kPageRows + key - page * kPageRows) * padded();
  }
  std::vector<double> ExpectedOfHead(int64_t row, int head) const {
    const int width = model_.head_width;
    const int64_t position = positions_[row], slice = row_slices_[row];
    const int64_t segment_vector = VectorOf(segment_starts_[row]), own_vector = VectorOf(position);
    std::vector<double> scores;
    std::vector<const Element*> values;
    const auto meet = [&](const Table& table, const std::vector<Element>& distances, int64_t key, int64_t distance,
                          bool in_window) {
      const int64_t count = static_cast<int64_t>(distances.size()) / (model_.heads * padded());
      const Element* const keys = RowOf(table, slice, key, head, 0);
      const Element* const term = distances.data() + (head * count + distance) * padded();
      // The kernel multiplies elements, so queries with their biases are rounded to such.
      const auto rounded = [](double value) {
        return static_cast<double>(ToFloat(ElementOf<Element>(static_cast<float>(value))));
      };
      double score = 0;
      for (int c = 0; c < width; ++c) {
        const int column = head * width + c;
        const double q = kQueryScale * double{ToFloat(queries_[row * stride_ + column])};
        score += rounded(q + (in_window ? window_bias_ : query_bias_)[column]) * ToFloat(keys[c]);
        score += rounded(q + (in_window ? relative_bias_ : query_bias_)[column]) * ToFloat(term[c]);
      }
      scores.push_back(score);
      values.push_back(RowOf(table, slice, key, head, 1));
    };
    for (int64_t j = segment_vector - memory_vectors_; j < own_vector; ++j) {
      meet(j < segment_vector ? memory_ : segment_, chunk_distances_, j, own_vector - 1 - j, false);
    }
    for (int64_t j = position - model_.window_length + 1; j <= position; ++j) {
      meet(window_, window_distances_, j, position - j, true);
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    std::vector<double> mixed(width, 0.0);
    for (size_t n = 0; n < scores.size(); ++n) {
      const double probability = std::exp(scores[n] - highest);
      sum += probability;
      for (int c = 0; c < width; ++c) mixed[c] += probability * ToFloat(values[n][c]);
    }
    for (double& value : mixed) value /= sum;
    return mixed;
  }

  const AttentionModel model_;
  const std::vector<TestedSlice> slices_;
  std::mt19937_64 random_;
  DeviceArrays arrays_;
  int64_t max_shared_bytes_ = 0;
  int memory_vectors_ = 0;
  int64_t page_elements_ = 0, rows_ = 0, stride_ = 0;
  std::vector<Element> pages_, zero_page_, window_distances_, chunk_distances_;
  std::vector<Row> queries_;
  std::vector<float> window_bias_, relative_bias_, query_bias_;
  std::vector<int64_t> positions_, segment_starts_, row_slices_;
  Table window_, memory_, segment_;
  Row* output_ = nullptr;
  CausalAttention attention_ = {};
};

}  // namespace longshort::models::cuda

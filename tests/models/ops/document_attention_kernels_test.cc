#include "models/ops/document_attention/document_attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::cpu::document_attention_kernels_test {

constexpr float kQueryScale = 0.75F;

// A random document of one head among others, and the same arithmetic in double precision, pair by pair.
class Problem {
 public:
  Problem(uint64_t seed, int64_t rows, int64_t shared, int64_t head_width, int64_t segment, int64_t margin)
      : rows_(rows), shared_(shared), width_(head_width), stride_(head_width + 3), random_(seed) {
    for (int64_t begin = 0; begin < rows; begin += segment) {
      segments_.push_back({begin, std::min(rows, begin + segment), std::max<int64_t>(0, begin - margin),
                           margin < 0 ? 0 : std::min(rows, begin + segment + margin)});
      if (margin < 0) segments_.back().first_key = 0;
    }
    for (auto* matrix : {&queries_, &keys_, &values_, &from_}) *matrix = Random(rows);
    for (auto* matrix : {&shared_keys_, &shared_values_}) *matrix = Random(shared);
  }

  // The largest difference of the output or a gradient from the exact one, or NaN.
  double Error(InstructionSet set) {
    const DocumentHead head{.head_width = width_,
                            .rows = rows_,
                            .shared = shared_,
                            .segments = segments_.data(),
                            .segment_count = static_cast<int64_t>(segments_.size()),
                            .query_scale = kQueryScale,
                            .queries = {queries_.data(), stride_},
                            .keys = {keys_.data(), stride_},
                            .values = {values_.data(), stride_},
                            .shared_keys = {shared_keys_.data(), stride_},
                            .shared_values = {shared_values_.data(), stride_}};
    std::vector<float> attended(rows_ * stride_), log_sums(rows_);
    std::vector<float> scratch(AttendDocumentScratchFloats(head), NAN);
    AttendDocument(head, {.attended = {attended.data(), stride_}, .log_sums = log_sums.data()}, scratch.data(), set);

    std::vector<std::vector<float>> to(5, std::vector<float>(std::max(rows_, shared_) * stride_));
    scratch.assign(DocumentGradientScratchFloats(head), NAN);
    DifferentiateDocument(head,
                          {.attended = {from_.data(), stride_},
                           .log_sums = log_sums.data(),
                           .queries = {to[0].data(), stride_},
                           .keys = {to[1].data(), stride_},
                           .values = {to[2].data(), stride_},
                           .shared_keys = {to[3].data(), stride_},
                           .shared_values = {to[4].data(), stride_}},
                          scratch.data(), set);
    const Exact exact = Compute();
    double error = Difference(attended, exact.attended);
    for (size_t i = 0; i < to.size(); ++i) error = Larger(error, Difference(to[i], exact.to[i]));
    return error;
  }

 private:
  struct Exact {
    std::vector<double> attended;
    std::vector<std::vector<double>> to;  // gradients of queries, keys, values, shared keys, shared values
  };

  std::vector<float> Random(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> matrix(count * stride_);
    for (float& x : matrix) x = normal(random_);
    return matrix;
  }

  // A NaN stays.
  static double Larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }

  double Difference(const std::vector<float>& a, const std::vector<double>& b) const {
    double largest = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      // Elements between the heads are not written.
      if (static_cast<int64_t>(i) % stride_ < width_) largest = Larger(largest, std::abs(a[i] - b[i]));
    }
    return largest;
  }

  double Dot(const std::vector<float>& a, int64_t i, const std::vector<float>& b, int64_t j) const {
    double sum = 0;
    for (int64_t c = 0; c < width_; ++c)
      sum += static_cast<double>(a[i * stride_ + c]) * static_cast<double>(b[j * stride_ + c]);
    return sum;
  }

  Exact Compute() const {
    Exact exact;
    exact.attended.resize(rows_ * stride_);
    for (const int64_t count : {rows_, rows_, rows_, shared_, shared_}) exact.to.emplace_back(count * stride_);
    for (const WindowSegment& segment : segments_) {
      for (int64_t query = segment.first_query; query < segment.end_query; ++query) AddQuery(query, segment, exact);
    }
    return exact;
  }

  void AddQuery(int64_t query, const WindowSegment& segment, Exact& exact) const {
    const int64_t seen = shared_ + segment.end_key - segment.first_key;
    const auto place = [&](int64_t n) { return n < shared_ ? n : segment.first_key + n - shared_; };
    const auto key = [&](int64_t n) -> const std::vector<float>& { return n < shared_ ? shared_keys_ : keys_; };
    const auto value = [&](int64_t n) -> const std::vector<float>& { return n < shared_ ? shared_values_ : values_; };
    std::vector<double> weights(seen), gradients(seen);
    double sum = 0, mean = 0;
    for (int64_t n = 0; n < seen; ++n)
      sum += weights[n] = std::exp(kQueryScale * Dot(queries_, query, key(n), place(n)));
    for (int64_t n = 0; n < seen; ++n) {
      weights[n] /= sum;
      gradients[n] = Dot(from_, query, value(n), place(n));
      mean += weights[n] * gradients[n];
    }
    for (int64_t n = 0; n < seen; ++n) {
      const double to_product = kQueryScale * weights[n] * (gradients[n] - mean);
      for (int64_t c = 0; c < width_; ++c) {
        const int64_t at_query = query * stride_ + c, at_key = place(n) * stride_ + c;
        exact.attended[at_query] += weights[n] * value(n)[at_key];
        exact.to[0][at_query] += to_product * key(n)[at_key];
        exact.to[n < shared_ ? 3 : 1][at_key] += to_product * queries_[at_query];
        exact.to[n < shared_ ? 4 : 2][at_key] += weights[n] * from_[at_query];
      }
    }
  }

  int64_t rows_, shared_, width_, stride_;
  std::mt19937_64 random_;
  std::vector<WindowSegment> segments_;
  std::vector<float> queries_, keys_, values_, shared_keys_, shared_values_, from_;
};

struct Shape {
  int64_t rows, shared, head_width, segment, margin;
};

TEST(DocumentAttention, MeetsExactSumsForAnyShapeOnEveryInstructionSet) {
  const std::vector<Shape> shapes = {
      {1, 0, 1, 1, 0},       // one token that sees itself
      {1, 1, 5, 8, 4},       // and CLS
      {77, 33, 32, 8, 4},    // the usual: CLS and 32 landmarks
      {77, 0, 12, 4, 2},     // no landmarks
      {100, 3, 16, 1, 1},    // windows of one token
      {64, 17, 7, 5, 2},     // odd ones
      {150, 9, 33, 40, 20},  // segments longer than a block of queries
      {50, 255, 8, 50, 0},   // one segment, more landmarks than tokens
      {70, 20, 24, 70, -1},  // shared vectors only
  };
  for (const Shape& shape : shapes) {
    for (const InstructionSet set : InstructionSetsHere()) {
      Problem problem(7, shape.rows, shape.shared, shape.head_width, shape.segment, shape.margin);
      EXPECT_LT(problem.Error(set), 2e-4) << InstructionSetName(set) << ", " << shape.rows << " rows, w "
                                          << shape.segment << ", width " << shape.head_width;
    }
  }
}

}  // namespace longshort::models::cpu::document_attention_kernels_test

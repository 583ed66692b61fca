#include "models/families/vil/vil_attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "models/ops/full_attention/full_attention.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"
#include "tests/models/families/vil/attention_loop.h"
#include "tests/models/families/vil/random_vil.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::vil_attention_test {

constexpr int64_t kHeadDim = 4;

// The first stage of a network, with one pair and double weights; `attributes` as in the architecture string.
template <typename Attention>
Attention FirstAttention(const std::string& attributes, int64_t heads, int64_t side, uint64_t seed) {
  const VilConfig config =
      VilOf(absl::StrFormat("l1,n1,p1,h%d,d%d,%s_l2,n0_l3,n0", heads, heads * kHeadDim, attributes), side);
  const VilNetwork network = NetworkOver(config, RandomVilTensors(config, seed, at::kDouble));
  return std::get<Attention>(network.stages[0].pairs[0].attention);
}

at::Tensor RandomRows(int64_t tokens, int64_t width, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({tokens, width}, generator, at::kDouble);
}

// Queries, keys and values of one head.
struct Head {
  at::Tensor queries, keys, values;  // [tokens, kHeadDim], queries scaled

  Head(const std::vector<at::Tensor>& projected, int64_t head)
      : queries(Slice(projected[0], head) / std::sqrt(static_cast<double>(kHeadDim))),
        keys(Slice(projected[1], head)),
        values(Slice(projected[2], head)) {}

  static at::Tensor Slice(const at::Tensor& rows, int64_t head) {
    return rows.narrow(1, head * kHeadDim, kHeadDim).contiguous();
  }
};

// Sparse attention over one image's tokens, one query at a time.
class SparseLoop {
 public:
  SparseLoop(const VilSparseAttention& attention, const at::Tensor& rows) : attention_(attention), rows_(rows) {
    projected_ = attention.query_key_value(rows).chunk(3, 1);
    for (int64_t i = 1; i < 3; ++i) projected_[i] = attention.full_norm(projected_[i]);
    if (attention.dynamic_projection.weight.defined()) {
      landmark_keys_ = Landmarks(projected_[1]);
      landmark_values_ = Landmarks(projected_[2]);
    }
  }

  // [tokens, width]
  at::Tensor Output() const {
    std::vector<at::Tensor> heads;
    for (int64_t head = 0; head < attention_.heads; ++head) heads.push_back(OutputOf(head));
    return attention_.output(at::cat(heads, 1));
  }

 private:
  int64_t globals() const { return attention_.global_tokens; }
  int64_t patches() const { return attention_.side * attention_.side; }

  // Keys or values compressed: a softmax over the patches for each head and landmark.
  at::Tensor Landmarks(const at::Tensor& projected) const {
    const at::Tensor logits = attention_.dynamic_projection(rows_.narrow(0, globals(), patches()));
    const int64_t rank = logits.size(1) / attention_.heads;
    std::vector<at::Tensor> landmarks;
    for (int64_t j = 0; j < rank; ++j) {
      std::vector<at::Tensor> heads;
      for (int64_t head = 0; head < attention_.heads; ++head) {
        const at::Tensor weights = logits.select(1, head * rank + j).softmax(0);
        heads.push_back(at::matmul(weights, Head::Slice(projected, head).narrow(0, globals(), patches())));
      }
      landmarks.push_back(at::cat(heads));
    }
    return attention_.landmark_norm(at::stack(landmarks));
  }

  at::Tensor OutputOf(int64_t head) const {
    const Head tokens(projected_, head);
    std::vector<at::Tensor> outputs;
    for (int64_t patch = 0; patch < patches(); ++patch) outputs.push_back(AttendPatch(tokens, head, patch));
    if (globals() == 0) return at::stack(outputs);
    AttentionLoop global(tokens.queries[0]);
    global.See(tokens.keys, tokens.values, 0);
    for (const at::Tensor& output : outputs) global.See(output, output, 0);
    outputs.insert(outputs.begin(), global.Sum());
    return at::stack(outputs);
  }

  at::Tensor AttendPatch(const Head& tokens, int64_t head, int64_t patch) const {
    AttentionLoop loop(tokens.queries[globals() + patch]);
    if (landmark_keys_.defined()) {
      const at::Tensor keys = Head::Slice(landmark_keys_, head), values = Head::Slice(landmark_values_, head);
      for (int64_t j = 0; j < keys.size(0); ++j) loop.See(keys, values, j);
    }
    if (attention_.window_size > 0) SeeWindow(tokens, head, patch, loop);
    if (globals() == 1) loop.See(tokens.keys, tokens.values, 0);
    return loop.Sum();
  }

  void SeeWindow(const Head& tokens, int64_t head, int64_t patch, AttentionLoop& loop) const {
    const int64_t side = attention_.side, w = attention_.window_size, wp = w / 2, margin = std::max<int64_t>(wp, 1);
    const int64_t row = patch / side, column = patch % side, qr = row % w, qc = column % w;
    for (int64_t kr = -margin; kr < w + margin; ++kr) {
      for (int64_t kc = -margin; kc < w + margin; ++kc) {
        const int64_t y = row - qr + kr, x = column - qc + kc;
        if (y < 0 || y >= side || x < 0 || x >= side) continue;
        const int64_t entry = w == 1 ? 0 : (qr - kr + wp + w - 1) * (2 * wp + w) + (qc - kc + wp + w - 1);
        const double bias = attention_.bias.table.defined() ? attention_.bias.table[entry][head].item<double>() : 0.0;
        loop.See(tokens.keys, tokens.values, globals() + y * side + x, bias);
      }
    }
  }

  const VilSparseAttention& attention_;
  at::Tensor rows_;
  std::vector<at::Tensor> projected_;
  at::Tensor landmark_keys_, landmark_values_;  // [rank, width]; undefined: none
};

at::Tensor FullLoop(const VilFullAttention& attention, const at::Tensor& rows, int64_t globals, int64_t side) {
  const std::vector<at::Tensor> projected = attention.query_key_value(rows).chunk(3, 1);
  const auto bias = [&](int64_t head, int64_t query, int64_t key) {
    if (!attention.bias_table.defined()) return 0.0;
    if (query < globals && key < globals) return attention.between_globals[head][query][key].item<double>();
    if (query < globals) return attention.global_biases[0][head][query].item<double>();
    if (key < globals) return attention.global_biases[1][head][key].item<double>();
    const int64_t q = query - globals, k = key - globals;
    const int64_t dr = q / side - k / side, dc = q % side - k % side;
    return attention.bias_table[(dr + side - 1) * (2 * side - 1) + dc + side - 1][head].item<double>();
  };
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < attention.heads; ++head) {
    const Head tokens(projected, head);
    std::vector<at::Tensor> outputs;
    for (int64_t query = 0; query < rows.size(0); ++query) {
      AttentionLoop loop(tokens.queries[query]);
      for (int64_t key = 0; key < rows.size(0); ++key) {
        loop.See(tokens.keys, tokens.values, key, bias(head, query, key));
      }
      outputs.push_back(loop.Sum());
    }
    heads.push_back(at::stack(outputs));
  }
  return attention.output(at::cat(heads, 1));
}

double Difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

struct SparseCase {
  int64_t window_size;
  int64_t side;
};

// Every way to combine windows, landmarks, the global token and position biases that the official code takes.
TEST(VilSparseAttention, EqualsALoopOverQueries) {
  uint64_t seed = 0;
  for (const auto& [window_size, side] :
       std::vector<SparseCase>{{0, 3}, {1, 1}, {1, 3}, {2, 2}, {2, 6}, {3, 6}, {4, 4}, {5, 5}}) {
    for (const int64_t rank : {0, 1, 3}) {
      for (const int64_t globals : {0, 1}) {
        for (const int64_t absolute : {0, 1}) {
          if (window_size == 0 && (rank == 0 || absolute == 0)) continue;
          const int64_t heads = 1 + static_cast<int64_t>(++seed % 3);
          const std::string attributes = absl::StrFormat("f%d,r%d,g%d,a%d,s1", window_size, rank, globals, absolute);
          const auto attention = FirstAttention<VilSparseAttention>(attributes, heads, side, seed);
          // Two images, so that one's tokens in another's place are noticed.
          const at::Tensor first = RandomRows(globals + side * side, heads * kHeadDim, 2 * seed);
          const at::Tensor second = RandomRows(globals + side * side, heads * kHeadDim, 2 * seed + 1);
          CpuItemAttention on_cpu;
          const at::Tensor found = attention(at::stack({first, second}), {}, on_cpu);
          EXPECT_LT(Difference(found[0], SparseLoop(attention, first).Output()), 1e-12) << attributes;
          EXPECT_LT(Difference(found[1], SparseLoop(attention, second).Output()), 1e-12) << attributes;
        }
      }
    }
  }
}

TEST(VilFullAttention, EqualsALoopOverQueries) {
  uint64_t seed = 100;
  for (const int64_t side : {1, 2, 3}) {
    for (const int64_t globals : {0, 1, 2}) {
      for (const int64_t absolute : {0, 1}) {
        const int64_t heads = 1 + static_cast<int64_t>(++seed % 3);
        const std::string attributes = absl::StrFormat("g%d,a%d,s0", globals, absolute);
        const auto attention = FirstAttention<VilFullAttention>(attributes, heads, side, seed);
        const at::Tensor first = RandomRows(globals + side * side, heads * kHeadDim, 2 * seed);
        const at::Tensor second = RandomRows(globals + side * side, heads * kHeadDim, 2 * seed + 1);
        const at::Tensor found = attention(at::stack({first, second}), {});
        EXPECT_LT(Difference(found[0], FullLoop(attention, first, globals, side)), 1e-12) << attributes;
        EXPECT_LT(Difference(found[1], FullLoop(attention, second, globals, side)), 1e-12) << attributes;
      }
    }
  }
}

TEST(VilFullAttention, TheKernelIsTheReferenceOnEveryInstructionSet) {
  uint64_t seed = 200;
  for (const int64_t side : {1, 3, 7, 14}) {
    for (const char* const attributes : {"g0,a0,s0", "g1,a0,s0", "g2,a0,s0", "g1,a1,s0"}) {
      auto attention = FirstAttention<VilFullAttention>(attributes, 2, side, ++seed);
      const at::Tensor rows = RandomRows(attributes[1] - '0' + side * side, 2 * kHeadDim, seed).expand({2, -1, -1});
      const at::Tensor exact = attention(rows, {}), all = attention.query_key_value(rows).to(at::kFloat);
      TensorMove move(at::kCPU, at::kFloat);
      attention.MoveBy(move);
      const FullBias bias{attention.kernel_bias, attention.global_biases, attention.between_globals};
      for (const cpu::InstructionSet set : cpu::InstructionSetsHere()) {
        const at::Tensor found = attention.output(AttendFully(all, attention.heads, bias, set));
        EXPECT_LT(Difference(found, exact), 1e-5) << cpu::InstructionSetName(set) << ", " << attributes << side;
      }
      EXPECT_LT(Difference(attention(rows.to(at::kFloat), {}), exact), 1e-5) << attributes << side;
    }
  }
}

// Layer norms of blocks have another epsilon than those of keys and values.
TEST(VilSparseAttention, DualLayerNormsHaveTheirOwnEpsilon) {
  const VilConfig config = VilOf("l1,h1,d4,p1,f1,r1_l2,n0_l3,n0", 4);
  const VilNetwork network = NetworkOver(config, RandomVilTensors(config, 1));
  const VilPair& pair = network.stages[0].pairs[0];
  const auto& attention = std::get<VilSparseAttention>(pair.attention);
  EXPECT_EQ(attention.full_norm.epsilon, 1e-5);
  EXPECT_EQ(attention.landmark_norm.epsilon, 1e-5);
  EXPECT_EQ(pair.attention_norm.epsilon, 1e-6);
  EXPECT_EQ(pair.feed_forward_norm.epsilon, 1e-6);
  EXPECT_EQ(network.stages[0].embedding_norm.epsilon, 1e-6);
  EXPECT_EQ(network.norm.epsilon, 1e-6);
}

}  // namespace longshort::models::vil_attention_test

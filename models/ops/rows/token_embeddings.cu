// Embeddings of tokens and their positions: one warp per row.
#include "models/device/device.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"
#include "models/ops/rows/token_embeddings.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = kThreads / kWarpThreads;

template <int n>
LS_KERNEL(kThreads)
void EmbedBoth(LS_ARGUMENTS EmbedTokens arguments) {
  const int64_t row = int64_t{Block().x} * kRows + Warp();
  if (row >= arguments.count) return;
  const int64_t token = int64_t{arguments.ids[row]} * arguments.width;
  const int64_t position = arguments.positions[row] * arguments.width;
  for (int c = n * Lane(); c < arguments.width; c += n * kWarpThreads) {
    SomeFloats<n> sum = LoadRow<n>(arguments.element, arguments.table, token + c);
    const SomeFloats<n> added = LoadRow<n>(arguments.element, arguments.position_table, position + c);
    LS_UNROLL
    for (int i = 0; i < n; ++i) sum.value[i] = Add(sum.value[i], added.value[i]);
    StoreRow<n>(arguments.element, arguments.output.data, row * arguments.output.stride + c, sum);
  }
}

template <int n>
KernelCall CallOf(const EmbedTokens& arguments) {
  LaunchShape shape;
  shape.grid.x = BlocksFor(arguments.count, kRows);
  shape.threads = kThreads;
  return MakeCall<EmbedBoth<n>>("EmbedBoth", shape, arguments);
}

}  // namespace

KernelCall EmbedTokensCall(const EmbedTokens& arguments) {
  const Rows table = {const_cast<void*>(arguments.table), arguments.width};
  const Rows position_table = {const_cast<void*>(arguments.position_table), arguments.width};
  return IsAligned(table) && IsAligned(position_table) && IsAligned(arguments.output) ? CallOf<4>(arguments)
                                                                                      : CallOf<1>(arguments);
}

}  // namespace longshort::models::cuda

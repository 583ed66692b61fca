// Attention of prompts on chips with less than 114 KiB of shared memory for a block. The kernel has a file of its own:
// beside it, nvcc gives AttendFromTiles<BFloat16, 64> so few registers on sm_100 that it spills.

#include "models/ops/causal_attention/prompt_tile.h"
#include "models/ops/rows/kernel_choice.h"

namespace longshort::models::cuda {
namespace {

template <typename Element, int width>
LS_KERNEL(kThreads)
void AttendInOneStage(LS_ARGUMENTS PromptAttention arguments) {
  const int64_t* const tile = arguments.tiles + 2 * Block().y;
  const int rows = static_cast<int>(tile[1]);
  if (rows == 0) return;
  PromptTile<Element, width, 1>(arguments.attention, tile[0], rows, Block().x).Run();
}

template <typename Element, int width>
KernelCall CallOfWidth(const PromptAttention& arguments, LaunchShape shape) {
  shape.shared_bytes = SharedLayout<Element, width, 1>::kBytes;
  return MakeCall<AttendInOneStage<Element, width>>("AttendInOneStage", shape, arguments);
}

}  // namespace

KernelCall OneStageCall(const PromptAttention& arguments, LaunchShape shape) {
  if (arguments.attention.element == ElementType::kFloat) return CallOfWidth<float, 64>(arguments, shape);
  return CallOfWidth<BFloat16, 128>(arguments, shape);
}

}  // namespace longshort::models::cuda

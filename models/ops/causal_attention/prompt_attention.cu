// Attention of prompts: a thread block for each tile and head (prompt_tile.h).

#include "models/ops/causal_attention/prompt_tile.h"
#include "models/ops/rows/kernel_choice.h"

namespace longshort::models::cuda {
namespace {

template <typename Element, int width>
LS_KERNEL(kThreads)
void AttendFromTiles(LS_ARGUMENTS PromptAttention arguments) {
  const int64_t* const tile = arguments.tiles + 2 * Block().y;
  const int rows = static_cast<int>(tile[1]);
  if (rows == 0) return;
  PromptTile<Element, width, kMostStages<Element, width>>(arguments.attention, tile[0], rows, Block().x).Run();
}

template <typename Element, int width>
KernelCall CallOfWidth(const PromptAttention& arguments, int64_t max_shared_bytes) {
  LaunchShape shape;
  // Adjacent blocks have the heads of a tile, because these read adjacent parts of the same pages.
  shape.grid.x = static_cast<unsigned>(arguments.attention.heads);
  shape.grid.y = static_cast<unsigned>(arguments.tile_count);
  shape.threads = kThreads;
  shape.shared_bytes = SharedLayout<Element, width, kMostStages<Element, width>>::kBytes;
  if constexpr (Tile<Element, width>::kBlockBytes == 16 * 1024) {
    if (static_cast<int64_t>(shape.shared_bytes) > max_shared_bytes) return OneStageCall(arguments, shape);
  }
  return MakeCall<AttendFromTiles<Element, width>>("AttendFromTiles", shape, arguments);
}

}  // namespace

KernelCall PromptAttentionCall(const PromptAttention& arguments, int64_t max_shared_bytes) {
  return ForTypeAndWidth(arguments.attention.element, arguments.attention.head_width, [&](auto element, auto width) {
    return CallOfWidth<decltype(element), decltype(width)::value>(arguments, max_shared_bytes);
  });
}

}  // namespace longshort::models::cuda

// A warp's matrix instructions. Fragments are as in the PTX manual, "Matrix fragments for mma.m16n8k16" and
// "mma.m16n8k8" of TF32. Sums in float32, k in order: a tensor core rounds differently, so results are equal up to
// rounding.

#include <cstring>

#include "tests/models/gpu/emulation/block.h"

namespace longshort::models::cuda::emulated {
namespace {

// A lane gives the registers a[4], b[2].
uint32_t Register(const LaneBytes& lane, int index) {
  uint32_t value;
  std::memcpy(&value, lane.bytes + 4 * index, 4);
  return value;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// Numbers in a register: 2 of bfloat16, or one of TF32.
float NumberIn(Meeting meeting, uint32_t bits, int index) {
  if (meeting == Meeting::kMultiplyTf32) return FromBits(bits & 0xffffe000u);
  return FromBits(index == 0 ? bits << 16 : bits & 0xffff0000u);
}

}  // namespace

void MultiplyWarp(Meeting meeting, const LaneBytes* operands, LaneBytes* sums) {
  const int in_register = meeting == Meeting::kMultiplyTf32 ? 1 : 2;
  const int depth = 8 * in_register;
  float a[16][16], b[16][8], d[16][8] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, quad = lane % 4;
    for (int half = 0; half < 2; ++half) {  // of k
      for (int i = 0; i < in_register; ++i) {
        const int k = half * depth / 2 + quad * in_register + i;
        a[group][k] = NumberIn(meeting, Register(operands[lane], 2 * half), i);
        a[group + 8][k] = NumberIn(meeting, Register(operands[lane], 2 * half + 1), i);
        b[k][group] = NumberIn(meeting, Register(operands[lane], 4 + half), i);
      }
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < depth; ++k) {
      for (int column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, quad = lane % 4;
    const float result[4] = {d[group][2 * quad], d[group][2 * quad + 1], d[group + 8][2 * quad],
                             d[group + 8][2 * quad + 1]};
    std::memcpy(sums[lane].bytes, result, sizeof(result));
  }
}

}  // namespace longshort::models::cuda::emulated

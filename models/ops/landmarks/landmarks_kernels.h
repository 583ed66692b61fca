// The landmarks of a document for training, with their gradient: weighted means of its rows, whose weights are a
// softmax of the dynamic projection's logits over the rows (equation 3 of the paper).
#pragma once

#include <cstdint>

#include "models/ops/rows/head_rows.h"
#include "models/ops/rows/instruction_set.h"

namespace longshort::models::cpu {

// One head of one document.
struct LandmarkHead {
  int64_t head_width = 0;  // a multiple of kLanes
  int64_t rows = 0, rank = 0;
  HeadRows<const float> logits;  // rank columns
  HeadRows<const float> keys, values;
};
// All are written.
struct LandmarkOutput {
  float* weights = nullptr;      // [rows][PaddedHeadWidth(rank)], for the gradient
  HeadRows<float> keys, values;  // [rank]
};
struct LandmarkGradient {
  const float* weights = nullptr;
  HeadRows<const float> landmark_keys, landmark_values;        // results of the forward pass
  HeadRows<const float> to_landmark_keys, to_landmark_values;  // their gradients
  HeadRows<float> logits, keys, values;                        // written
};

void MixLandmarks(const LandmarkHead& head, const LandmarkOutput& output, InstructionSet set = BestInstructionSet());

int64_t LandmarkGradientScratchFloats(const LandmarkHead& head);
void DifferentiateLandmarks(const LandmarkHead& head, const LandmarkGradient& gradient, float* scratch,
                            InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu

// What longshort-gpu-counts prints: lines of counts.txt, which need neither a GPU nor weights.
#pragma once

#include <string>
#include <vector>

namespace longshort::models {

// The language model: the nodes of each graph, and bytes and nodes of the steps that docs/gpu.md measures. bfloat16.
std::vector<std::string> LinesOfSteps();
// Batches of 32 items of the published classifiers.
std::vector<std::string> LinesOfBatches();
// The launch of each kernel for each type and width: threads and shared memory of a block. Kernels of rows are counted
// at the width of the language model.
std::vector<std::string> LinesOfLaunches();

}  // namespace longshort::models

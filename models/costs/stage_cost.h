// What a part of a classifier costs: for operators who choose a model, and for tests against published figures.
#pragma once

#include <cstdint>
#include <string>

namespace longshort {

struct StageCost {
  // fvcore, with which the published figures were counted, takes a layer norm for 5 multiply-adds an element.
  static constexpr double kPerNormElement = 5;

  std::string name;        // "stage 1", "head"
  int64_t parameters = 0;  // trained numbers
  // For one item; whole numbers, which may be more than an int64_t holds where a configuration is allowed to be absurd.
  double multiply_adds = 0;    // of matrix products and convolutions
  double normed_elements = 0;  // that layer norms give
};

}  // namespace longshort

// The architecture string of ViL, which describes each stage of the network.
//
//   l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,h3,d192,n4,s1,g1,p2,f7,a0,r8_l3,h6,d384,n16,s0,g1,p2,f7,a0,r8
//
// It has 3 or 4 stages, separated by `_`. A stage is a list of attributes, separated by `,`, in any order. An attribute
// is a letter and a decimal number, and occurs at most once. Missing attributes have the defaults of VilStage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/weights/config_fields.h"

namespace longshort::models {

struct VilStage {
  int64_t number = 1;              // l: 1 for the first stage, 2 for the second, ...
  int64_t heads = 3;               // h: divides the width
  int64_t width = 192;             // d: channels of a token
  int64_t pairs = 1;               // n: number of pairs of attention and feed-forward
  bool sparse = true;              // s: long-short attention (s1) or full attention (s0)
  int64_t global_tokens = 1;       // g: tokens before the patches
  int64_t patch_size = 2;          // p: kernel and stride of the stage's patch convolution
  int64_t window_size = 7;         // f: windows are f x f patches; 0: no windows. Only in sparse stages
  bool absolute_positions = true;  // a: added to the tokens (a1), or biases of the scores by relative position (a0)
  int64_t projection_rank = 0;     // r: landmarks of the dynamic projection; 0: none. Only in sparse stages

  // Number of places in the window of a query of a sparse stage: its f x f patches and max(f / 2, 1) more on each of
  // the four sides. 0 without windows.
  int64_t WindowPlaces() const;

  friend bool operator==(const VilStage&, const VilStage&) = default;
};

// All attributes of a stage, by letter.
std::vector<FieldDescription> VilStageAttributes();

// Checks the ranges of all attributes, the rules between attributes, and that all stages after one with full attention
// have full attention. `name` starts the message. It does not check whether the stages fit an image.
// Errors: INVALID_ARGUMENT naming the stage, the attribute, its value and the limit or rule.
absl::Status CheckVilStages(absl::Span<const VilStage> stages, std::string_view name);

// Parses and checks an architecture string. As in the official code, all stages after one with s0 have full
// attention, whatever their s is. Their field `sparse` is false. Errors: those of CheckVilStages;
// INVALID_ARGUMENT naming the stage and the attribute that cannot be read.
absl::StatusOr<std::vector<VilStage>> ParseVilStages(std::string_view text, std::string_view name);

// The architecture string with all attributes. Parsing it gives the same stages.
std::string ToText(absl::Span<const VilStage> stages);

}  // namespace longshort::models

#include "models/families/vil/vil_stages.h"

#include <algorithm>
#include <array>
#include <set>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"

namespace longshort::models {
namespace {

struct Attribute {
  char letter;
  std::variant<int64_t VilStage::*, bool VilStage::*> member;
  int64_t min;
  int64_t max;
  std::string_view help;  // meaning, for the docs
};

// In the order in which they are written.
constexpr std::array<Attribute, 10> kAttributes = {{
    {'l', &VilStage::number, 1, 4, "The stage's number, in order."},
    {'h', &VilStage::heads, 1, 1 << 10, "Attention heads."},
    {'d', &VilStage::width, 1, 1 << 13, "Width of a token; a multiple of h; even with a1."},
    {'n', &VilStage::pairs, 0, 1 << 7, "Blocks: attention and feed-forward part."},
    {'s', &VilStage::sparse, 0, 1,
     "Long-short attention (1), or full attention (0). After a stage with 0, all stages have full attention."},
    {'g', &VilStage::global_tokens, 0, 1 << 8, "Global tokens before the patches; 0 or 1 with s1."},
    {'p', &VilStage::patch_size, 1, 1 << 10, "Kernel and stride of the stage's patch convolution."},
    {'f', &VilStage::window_size, 0, 1 << 10,
     "w: patches along a side of a segment; it divides the stage's grid. 0: no windows. Only with s1."},
    {'a', &VilStage::absolute_positions, 0, 1,
     "Absolute positions (1), or biases of the scores by relative position (0)."},
    {'r', &VilStage::projection_rank, 0, 1 << 10, "r: landmarks of an image, for each head; 0: none. Only with s1."},
}};

constexpr size_t kMinStages = 3;
constexpr size_t kMaxStages = 4;
constexpr size_t kMaxTextBytes = size_t{1} << 12;

int64_t Value(const VilStage& stage, const Attribute& attribute) {
  return std::visit([&](auto member) { return static_cast<int64_t>(stage.*member); }, attribute.member);
}

// Adds the stage to an error; the errors below do not name it. `index` counts from 0.
absl::Status InStage(std::string_view name, size_t index, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: stage %d: %s", name, index + 1, std::string(status.message())));
}

absl::Status WrongValue(const Attribute& attribute, std::string_view value) {
  return absl::InvalidArgumentError(absl::StrFormat("%c is %s; it must be a whole number in %d..%d", attribute.letter,
                                                    value, attribute.min, attribute.max));
}

absl::StatusOr<const Attribute*> FindAttribute(const std::string& text) {
  if (text.empty()) return absl::InvalidArgumentError("an attribute is empty");
  for (const Attribute& attribute : kAttributes) {
    if (attribute.letter == text.front()) return &attribute;
  }
  const std::string letters =
      absl::StrJoin(kAttributes, ", ", [](std::string* out, const Attribute& attribute) { *out += attribute.letter; });
  return absl::InvalidArgumentError(
      absl::StrFormat("unknown attribute %s; the attributes are %s", QuoteForMessage(text), letters));
}

absl::StatusOr<VilStage> ReadStage(const std::string& text) {
  VilStage stage;
  std::set<char> seen;
  const std::vector<std::string> attributes = absl::StrSplit(text, ',');
  for (const std::string& written : attributes) {
    LS_ASSIGN_OR_RETURN(const Attribute* attribute, FindAttribute(written));
    const std::string digits = written.substr(1);
    int64_t value = 0;
    if (digits.find_first_not_of("0123456789") != std::string::npos || !absl::SimpleAtoi(digits, &value)) {
      return WrongValue(*attribute, QuoteForMessage(digits));
    }
    if (value < attribute->min || value > attribute->max) return WrongValue(*attribute, digits);
    if (!seen.insert(attribute->letter).second) {
      return absl::InvalidArgumentError(absl::StrFormat("%c occurs twice", attribute->letter));
    }
    std::visit([&](auto member) { stage.*member = value; }, attribute->member);
  }
  return stage;
}

// Rejects stages with sparse attention that the official code cannot run.
absl::Status CheckSparseAttention(const VilStage& stage) {
  if (stage.global_tokens > 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("g is %d; it must be 0 or 1 with sparse attention (s1)", stage.global_tokens));
  }
  if (stage.window_size > 0) return absl::OkStatus();
  if (stage.projection_rank == 0) {
    return absl::InvalidArgumentError(
        "f is 0 and r is 0; sparse attention (s1) needs windows (f over 0) or landmarks (r over 0)");
  }
  if (!stage.absolute_positions) {
    return absl::InvalidArgumentError(
        "a is 0 and f is 0; sparse attention (s1) without windows (f0) needs absolute positions: set a to 1");
  }
  return absl::OkStatus();
}

absl::Status CheckStage(const VilStage& stage, size_t index) {
  for (const Attribute& attribute : kAttributes) {
    const int64_t value = Value(stage, attribute);
    if (value < attribute.min || value > attribute.max) return WrongValue(attribute, absl::StrCat(value));
  }
  if (stage.number != static_cast<int64_t>(index) + 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("l is %d; it must be %d: stages must be in order", stage.number, index + 1));
  }
  if (stage.width % stage.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("d is %d; it must be a multiple of h, %d", stage.width, stage.heads));
  }
  if (stage.absolute_positions && stage.width % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("d is %d; absolute positions (a1) need an even number", stage.width));
  }
  // A stage without pairs has no attention.
  return stage.sparse && stage.pairs > 0 ? CheckSparseAttention(stage) : absl::OkStatus();
}

}  // namespace

int64_t VilStage::WindowPlaces() const {
  if (window_size == 0) return 0;
  const int64_t visible_side = window_size + 2 * std::max<int64_t>(window_size / 2, 1);
  return visible_side * visible_side;
}

absl::Status CheckVilStages(absl::Span<const VilStage> stages, std::string_view name) {
  if (stages.size() < kMinStages || stages.size() > kMaxStages) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %d stages; there must be %d or %d", name, stages.size(), kMinStages, kMaxStages));
  }
  bool full = false;
  for (size_t index = 0; index < stages.size(); ++index) {
    LS_RETURN_IF_ERROR(InStage(name, index, CheckStage(stages[index], index)));
    full = full || !stages[index].sparse;
    if (full && stages[index].sparse) {
      return InStage(name, index,
                     absl::InvalidArgumentError(
                         "s is 1 after a stage with s 0; all stages after one with full attention must have s 0"));
    }
  }
  return absl::OkStatus();
}

std::vector<FieldDescription> VilStageAttributes() {
  std::vector<FieldDescription> attributes;
  attributes.reserve(std::size(kAttributes));
  for (const Attribute& attribute : kAttributes) {
    attributes.push_back(
        {std::string_view(&attribute.letter, 1),
         absl::StrCat(RangeText(attribute.min, attribute.max), "; absent: ", Value(VilStage(), attribute)),
         attribute.help});
  }
  return attributes;
}

absl::StatusOr<std::vector<VilStage>> ParseVilStages(std::string_view text, std::string_view name) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %d bytes; the limit is %d", name, text.size(), kMaxTextBytes));
  }
  const std::vector<std::string> written = absl::StrSplit(std::string(text), '_');
  std::vector<VilStage> stages;
  bool sparse = true;
  for (const std::string& stage_text : written) {
    absl::StatusOr<VilStage> stage = ReadStage(stage_text);
    LS_RETURN_IF_ERROR(InStage(name, stages.size(), stage.status()));
    sparse = sparse && stage->sparse;
    stage->sparse = sparse;
    stages.push_back(*stage);
  }
  LS_RETURN_IF_ERROR(CheckVilStages(stages, name));
  return stages;
}

std::string ToText(absl::Span<const VilStage> stages) {
  return absl::StrJoin(stages, "_", [](std::string* out, const VilStage& stage) {
    absl::StrAppend(out, absl::StrJoin(kAttributes, ",", [&](std::string* attribute_out, const Attribute& attribute) {
                      absl::StrAppendFormat(attribute_out, "%c%d", attribute.letter, Value(stage, attribute));
                    }));
  });
}

}  // namespace longshort::models

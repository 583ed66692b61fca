// Parses any text as config.json of a ViL, or as its architecture string. It is rejected with a message, or the
// configuration can be computed with and written.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/families/family.h"
#include "models/families/vil/vil_config.h"
#include "tests/fuzz/require.h"

namespace longshort {
namespace {

void RequireRefusal(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kInvalidArgument, "what cannot be read is an invalid argument");
  Require(status.message().substr(0, 6) == "fuzz: ", "the message starts with the file");
}

void TryStages(std::string_view text) {
  const auto stages = models::ParseVilStages(text, "fuzz");
  if (!stages.ok()) return RequireRefusal(stages.status());
  Require(models::CheckVilStages(*stages, "fuzz").ok(), "what was parsed holds the rules");
  const auto again = models::ParseVilStages(models::ToText(*stages), "fuzz");
  Require(again.ok() && *again == *stages, "what is written is read back");
}

void TryConfig(std::string_view text) {
  const auto config = models::ParseVilConfig(text, "fuzz");
  if (!config.ok()) return RequireRefusal(config.status());
  Require(models::CheckVilConfig(*config, "fuzz").ok(), "what was parsed holds the rules");
  Require(models::CountParameters(models::VilTensors(*config)) > 0, "the parameters can be counted");
  for (const models::StageCost& cost : models::VilCosts(*config))
    Require(cost.multiply_adds > 0, "every part costs something");
  const auto again = models::ParseVilConfig(models::ToJson(*config), "fuzz");
  Require(again.ok() && *again == *config, "what is written is read back");
}

}  // namespace
}  // namespace longshort

// A config.json begins with a brace, an architecture string does not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    longshort::TryConfig(text);
  } else {
    longshort::TryStages(text);
  }
  return 0;
}

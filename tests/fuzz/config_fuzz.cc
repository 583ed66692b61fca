// Parses any text as config.json. It is rejected with a message, or the configuration can be computed with and written.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/families/language_model/language_model_config.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  const auto config =
      models::ParseLanguageModelConfig(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!config.ok()) {
    Require(config.status().code() == absl::StatusCode::kInvalidArgument, "a broken config is an invalid argument");
    Require(config.status().message().substr(0, 6) == "fuzz: ", "the message starts with the file");
    return 0;
  }
  Require(models::CheckLanguageModelConfig(*config, "fuzz").ok(), "what was parsed holds the rules");
  Require(models::CountParameters(models::LanguageModelTensors(*config)) > 0, "the parameters can be counted");
  const auto again = models::ParseLanguageModelConfig(models::ToJson(*config), "fuzz");
  Require(again.ok() && *again == *config, "what is written is read back");
  return 0;
}

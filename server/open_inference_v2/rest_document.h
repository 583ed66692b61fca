// The JSON of an inference request. The `data` of inputs, which may have millions of elements, are not kept as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "server/open_inference_v2/rest_data.h"

namespace longshort::server {

struct RestDocument {
  // An object. Where an input has `data`, its value here is null.
  nlohmann::json root;
  // By the input's index.
  std::map<size_t, RestData> data;
};

// Errors: INVALID_ARGUMENT for what is not a JSON object in UTF-8, repeats a key in an object, or is too deep or too
// large beside the data; those of RestData.
absl::StatusOr<RestDocument> ParseRestDocument(std::string_view text, int64_t max_bytes);

}  // namespace longshort::server

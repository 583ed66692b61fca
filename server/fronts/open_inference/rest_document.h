// The JSON of an inference request. The `data` of inputs, which may have millions of elements, are not kept as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "absl/status/status.h"
#include "base/memory_meter.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/fronts/open_inference/rest_data.h"

namespace longshort::server {

struct RestDocument {
  RestDocument() = default;
  RestDocument(const RestDocument&) = delete;
  RestDocument& operator=(const RestDocument&) = delete;
  ~RestDocument() { FreeJson(root); }

  // An object. Where an input has `data`, its value here is null.
  nlohmann::json root;
  int64_t root_bytes = 0;  // of what the meter counts: all but the data
  // By the input's index.
  std::map<size_t, RestData> data;
};

// Sets `document`. The meter counts what it takes, and must outlive it.
// Errors: INVALID_ARGUMENT for what is not a JSON object in UTF-8, repeats a key in an object, is too deep or too large
// beside the data, or has a shape of more than 8 sizes; those of RestData; the meter's.
absl::Status ParseRestDocument(std::string_view text, int64_t max_bytes, MemoryMeter& meter, RestDocument& document);

}  // namespace longshort::server

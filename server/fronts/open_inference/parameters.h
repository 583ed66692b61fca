// Reads the parameters of a request, an input or an output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "open_inference/v2/service.pb.h"
#include "server/calls/generate_call.h"
#include "server/fronts/json/json_schema.h"

namespace longshort::server {

// A view of the message's map, valid as long as the map. A value may come in any field that can hold it, and as a
// string, because KServe's contract has no field for fractions. Errors are INVALID_ARGUMENT with the parameter, its
// value and the rule.
class Parameters final {
 public:
  using Map = google::protobuf::Map<std::string, inference::InferParameter>;

  // `place` precedes a parameter's name in errors.
  Parameters(const Map& map, std::string place) : map_(map), place_(std::move(place)) {}

  bool empty() const { return map_.empty(); }
  bool Has(const std::string& name) const { return map_.contains(name); }

  absl::StatusOr<std::optional<int64_t>> Integer(const std::string& name) const;
  absl::StatusOr<std::optional<uint64_t>> Unsigned(const std::string& name) const;
  absl::StatusOr<std::optional<double>> Number(const std::string& name) const;
  absl::StatusOr<std::optional<bool>> Boolean(const std::string& name) const;
  absl::StatusOr<std::optional<std::string>> Text(const std::string& name) const;

  // Returns an error for the first parameter that is not in `known`, with that list. Ignores names that begin with
  // "triton_".
  absl::Status RefuseUnknown(absl::Span<const SchemaField> known) const;

 private:
  // Converts the value with `value_of`, which returns nullopt for a value that is not `wanted`.
  template <typename Value>
  absl::StatusOr<std::optional<Value>> Read(const std::string& name, const std::string& wanted,
                                            std::optional<Value> (*value_of)(const inference::InferParameter&)) const;

  const Map& map_;
  const std::string place_;
};

// The generation parameters of a request. Their names are those of longshort.v1's fields.
const std::vector<SchemaField>& GenerationParameterFields();

// A call without model and prompt. `stop` is one stop string, or a JSON list of strings. Does not check ranges.
// Errors: INVALID_ARGUMENT with the parameter, its value and the rule.
absl::StatusOr<GenerateCall> ReadGenerationParameters(const Parameters& parameters);

}  // namespace longshort::server

// The parameters of a request, an input or an output, read one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "open_inference/v2/service.pb.h"
#include "server/calls/generate_call.h"

namespace longshort::server {

// Shows the message's map: valid as long as it. Values may come in any field that can hold them, and as text: clients
// of KServe's contract have no field for fractions. Errors are INVALID_ARGUMENT naming parameter, value and what it
// must be.
class Parameters final {
 public:
  using Map = google::protobuf::Map<std::string, inference::InferParameter>;

  // `place` stands before a parameter's name in errors.
  Parameters(const Map& map, std::string place) : map_(map), place_(std::move(place)) {}

  bool empty() const { return map_.empty(); }
  bool Has(const std::string& name) const { return map_.contains(name); }

  absl::StatusOr<std::optional<int64_t>> Integer(const std::string& name) const;
  absl::StatusOr<std::optional<uint64_t>> Unsigned(const std::string& name) const;
  absl::StatusOr<std::optional<double>> Number(const std::string& name) const;
  absl::StatusOr<std::optional<bool>> Boolean(const std::string& name) const;
  absl::StatusOr<std::optional<std::string>> Text(const std::string& name) const;

  // An error naming the first parameter that is not among `known`, and these. What begins with "triton_" is for servers
  // that know it.
  absl::Status RefuseUnknown(absl::Span<const std::string_view> known) const;

 private:
  // As `value_of` has it, which gives nothing for what is not `wanted`.
  template <typename Value>
  absl::StatusOr<std::optional<Value>> Read(const std::string& name, const std::string& wanted,
                                            std::optional<Value> (*value_of)(const inference::InferParameter&)) const;

  const Map& map_;
  const std::string place_;
};

// How a text goes on, as the parameters of a request say it: by the names of longshort.v1's fields.
absl::Span<const std::string_view> GenerationParameterNames();

// Without model and prompt. `stop` is one stop string, or a JSON list of them. Ranges are not checked.
// Errors: INVALID_ARGUMENT naming the parameter, its value and what it must be.
absl::StatusOr<GenerateCall> ReadGenerationParameters(const Parameters& parameters);

}  // namespace longshort::server

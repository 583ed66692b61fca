// Parses any bytes as an inference request of the Open Inference Protocol's REST form. It is rejected, or its contents
// are limited and its data has as many elements as its shape. The first byte is how much of the rest is binary data.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/fronts/open_inference/rest_messages.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  constexpr int64_t kMaxBytes = 1000;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t json_bytes = body.size() - std::min<size_t>(data[0], body.size());
  inference::ModelInferRequest request;
  server::BinaryOutputs outputs;
  MemoryMeter meter;
  const absl::Status read =
      server::ReadRestRequest(body.substr(0, json_bytes), body.substr(json_bytes), kMaxBytes, meter, request, outputs);
  if (!read.ok()) {
    Require(absl::IsInvalidArgument(read) || absl::IsResourceExhausted(read),
            "what is no request is the client's fault");
    return 0;
  }
  Require(request.raw_input_contents_size() == request.inputs_size(), "every input has contents");
  for (int i = 0; i < request.inputs_size(); ++i) {
    const auto& input = request.inputs(i);
    const auto bytes = static_cast<int64_t>(request.raw_input_contents(i).size());
    Require(bytes <= static_cast<int64_t>(size) + kMaxBytes, "contents are limited");
    Require(input.parameters().count("binary_data_size") == 0, "the binary form leaves no trace");
  }
  Require(request.SerializeAsString().size() < 64 * size + kMaxBytes, "a request is not much larger than its text");
  return 0;
}

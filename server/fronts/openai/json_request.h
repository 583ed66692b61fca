// The JSON of a request, whose texts and token ids move into a message.
#pragma once

#include <google/protobuf/repeated_field.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/memory_meter.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/calls/call_parts.h"
#include "server/calls/request_limits.h"
#include "server/fronts/openai/messages.pb.h"

namespace longshort::server {

// The limit of a field of at most `most` texts.
inline JsonListLimit LimitOfTexts(std::string_view field, int64_t most, const RequestLimits& limits) {
  return {.key = field, .elements = most, .numbers = limits.prompt_tokens};
}

class JsonRequest final {
 public:
  // The meter counts the document until the destructor frees it, and what is moved into a message beyond that.
  JsonRequest(MemoryMeter& meter, absl::Span<const JsonListLimit> lists) : meter_(meter), lists_(lists) {}
  JsonRequest(const JsonRequest&) = delete;
  JsonRequest& operator=(const JsonRequest&) = delete;
  ~JsonRequest();

  // Errors: INVALID_ARGUMENT if the body is no JSON object, repeats a key, is nested too deeply, or has too long a
  // list; the meter's.
  absl::Status Parse(std::string_view body);

  // A field of the body.
  JsonView At(std::string_view field) { return JsonView(document_).At(field); }

  // These add a part to a message. Errors: JsonView::Wrong if the value is not of this kind; the meter's.
  absl::Status MoveText(const JsonView& text, std::string_view wanted, std::string& to);
  absl::Status ReadTokenIds(const JsonView& list, google::protobuf::RepeatedField<int32_t>& ids);
  // A text, token ids, or a list of either.
  absl::Status ReadPrompts(const JsonView& value, google::protobuf::RepeatedPtrField<openai::Prompt>& prompts);
  // Counts a submessage or a map entry of a message, beside its texts and ids.
  absl::Status CountPart() { return meter_.Add(kPartBytes); }

 private:
  static constexpr int64_t kPartBytes = 64;

  MemoryMeter& meter_;
  const absl::Span<const JsonListLimit> lists_;
  nlohmann::json document_;
  int64_t document_bytes_ = 0;
};

// Views the prompt.
TextInput FromMessage(const openai::Prompt& prompt);

}  // namespace longshort::server

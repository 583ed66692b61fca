// Generated output that is not delivered yet: text that may become a stop string, and the tokens that it comes from.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/requests/generation_request.h"
#include "core/sampling/log_probabilities.h"
#include "core/sampling/stop_strings.h"

namespace longshort::core {

// A token is delivered with the first of its bytes; a token without bytes, with all the bytes before it.
class DeltaBuffer {
 public:
  explicit DeltaBuffer(const std::vector<std::string>& stop_strings) : stop_strings_(stop_strings) {}

  // Adds a token and its bytes. Returns what can be delivered, which may be empty. After the bytes complete a stop
  // string, nothing more is delivered. REQUIRES: stop_string() is null.
  GenerationDelta Append(GeneratedToken token, std::string_view bytes);
  // At the end of the generation: returns everything that was held back.
  GenerationDelta Flush();

  // The completed stop string, or null.
  const std::string* stop_string() const { return stop_strings_.met(); }

 private:
  struct HeldToken {
    GeneratedToken token;
    int64_t due;  // delivered once so many bytes are
  };

  // Adds the tokens that are due when `bytes` are delivered.
  GenerationDelta Deliver(std::string bytes);

  StopStrings stop_strings_;
  std::deque<HeldToken> held_tokens_;
  int64_t appended_bytes_ = 0;
  int64_t delivered_bytes_ = 0;
};

}  // namespace longshort::core

#include "server/options/memory_shares.h"

#include <algorithm>

namespace longshort {
namespace {

constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));

}  // namespace

int64_t MessageBufferBytes(const ServerOptions& options, const MachineLimits& machine) {
  constexpr int64_t kLeast = int64_t{64} << 20;
  return std::max({machine.memory_bytes / 8, 4 * options.max_message_bytes, kLeast});
}

int64_t PromptTokens(const ServerOptions& options, const MachineLimits& machine) {
  return std::max(machine.memory_bytes / 8 / kTokenBytes, 2 * options.max_prompt_tokens);
}

int64_t WaitingBytes(const ServerOptions& options, const MachineLimits& machine) {
  return std::max(machine.memory_bytes / 64, 2 * options.max_message_bytes);
}

int64_t SessionTokens(const ServerOptions& options, const MachineLimits& machine) {
  return std::max(machine.memory_bytes / 64 / kTokenBytes, 2 * options.max_prompt_tokens);
}

int64_t SessionTokensOfClient(const ServerOptions& options, int64_t of_all) {
  return std::max(of_all / 4, 2 * options.max_prompt_tokens);
}

int64_t SessionTransferBytes(const ServerOptions& options, const MachineLimits& machine) {
  constexpr int64_t kLeast = int64_t{64} << 20;
  return options.session_key_file.empty() ? 0 : std::max(machine.memory_bytes / 32, kLeast);
}

int64_t DecodingBytes(const ServerOptions& options) {
  return options.preparation_threads * ServedImageLimits(options).DecodingBytes();
}

}  // namespace longshort

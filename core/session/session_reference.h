// How a request names the session that it goes on with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longshort {

// A conversation that a request goes on with, or begins (core/session/session_store.h); the client's that asks.
struct SessionReference {
  std::string id;
  // Only go on: it must be there.
  bool must_exist = false;
  // How many tokens it must hold; 0 if it must be new.
  std::optional<int64_t> expected_tokens = std::nullopt;
};

}  // namespace longshort

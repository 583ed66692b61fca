// Sets of scopes, as token files have them.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/calls/call_names.h"

namespace longshort {

class ScopeSet final {
 public:
  ScopeSet() = default;

  bool Has(Scope scope) const { return (bits_ & Bit(scope)) != 0; }
  void Add(Scope scope) { bits_ |= Bit(scope); }
  bool empty() const { return bits_ == 0; }

 private:
  static uint8_t Bit(Scope scope) { return static_cast<uint8_t>(1U << static_cast<uint8_t>(scope)); }

  uint8_t bits_ = 0;
};

// "infer", "sessions", "manage", "observe".
const char* NameOf(Scope scope);
// The same, for messages: what a scope may be.
inline constexpr char kScopesRule[] = "one or more of infer, sessions, manage, observe, each once, with commas between";

// Scopes with commas between, as a token's line has them. Errors: INVALID_ARGUMENT, completing "scopes is ...".
absl::Status ReadScopes(std::string_view text, ScopeSet* scopes);

}  // namespace longshort

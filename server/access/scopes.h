// What one may do with a call, and which call needs what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace longshort {

enum class Scope : uint8_t {
  kInfer,     // ask models, and see which there are
  kSessions,  // conversations: go on with them, close and move them
  kManage,    // load and unload models
  kObserve,   // health where it is not open to all, reflection, metrics
};

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

// What a call needs.
struct RpcAccess {
  Scope scope = Scope::kInfer;
  // Asks how one thing is that the caller names: open to everybody, unless --protect-health.
  bool health = false;
};

// By the name that CallNames::rpc() gives; "/metrics" is a call, too. nullopt for a name that is not in the table: such
// a call is for nobody.
std::optional<RpcAccess> AccessOf(std::string_view rpc);

}  // namespace longshort

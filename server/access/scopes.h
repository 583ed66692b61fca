// What a credential allows: its scopes and models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/calls/call_names.h"

namespace longshort::server {

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
// The valid scopes, for messages.
inline constexpr char kScopesRule[] = "one or more of infer, sessions, manage, observe, each once, separated by commas";

// Parses scopes separated by commas. Errors: INVALID_ARGUMENT, completing "scopes is ...".
absl::Status ReadScopes(std::string_view text, ScopeSet* scopes);

// The models that an identity may use. Immutable once read.
class ModelPatterns final {
 public:
  // All models.
  ModelPatterns() = default;

  // Parses names separated by commas; a * at the end of a name matches any characters. Errors: INVALID_ARGUMENT,
  // completing "models is ...".
  static absl::Status Read(std::string_view text, ModelPatterns* patterns);

  bool Allow(std::string_view model) const;
  // Whether they allow every model.
  bool AllowAll() const { return all_; }

 private:
  struct Pattern {
    std::string begin;
    bool open = false;  // any characters may follow
  };

  bool all_ = true;
  std::vector<Pattern> patterns_;
};

}  // namespace longshort::server

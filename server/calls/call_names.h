// The names of an RPC and of its fields, and the access that its callers need, independent of the protocol.
// Errors about a wrong call name the RPC and the field in the words of the client's protocol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace longshort::server {

// Which part of a text input a path names: the whole input, or one of its forms.
enum class TextPart { kWhole, kText, kBytes, kIds };

// A field of a call, named by its path in longshort.v1, whichever protocol the call came by.
struct FieldPath {
  std::string_view field = {};                  // such as "sampling.top_p"
  std::optional<int64_t> index = std::nullopt;  // in a repeated field; for sampling.logit_bias, the token
  TextPart part = TextPart::kWhole;
  std::optional<int64_t> id_index = std::nullopt;  // with kIds: the index of the id
};

// How a protocol names the fields of calls.
struct FieldVocabulary {
  std::string (*name_of)(const FieldPath& path) = nullptr;
  // The kinds of value that a text or an image may have, for the error "it must have ...".
  const char* text_kinds = "";
  const char* image_kinds = "";
  // The RPC for requests whose answer is too long for a unary call.
  const char* streaming_rpc = "";
};

// A group of RPCs that a credential allows.
enum class Scope : uint8_t {
  kInfer,     // run models and list them
  kSessions,  // continue, close and move conversations
  kManage,    // load and unload models
  kObserve,   // health (unless public), reflection, metrics
};

// The access that an RPC needs. server/handlers/sessions.h checks what depends on the fields of a call.
struct RpcAccess {
  Scope scope = Scope::kObserve;
  // Whether the RPC reads the health of one named item. Such RPCs are public unless --protect-health is set.
  bool health = false;
};
inline constexpr RpcAccess kHealthAccess = {.scope = Scope::kObserve, .health = true};

// Immutable. Must outlive its calls, which read it from any thread.
class CallNames final {
 public:
  // `method` is package.Service/Method. `rpc` is the name in messages, metrics and logs, by default Method.
  // All arguments are constants.
  constexpr CallNames(const FieldVocabulary& vocabulary, const char* method, RpcAccess access,
                      const char* rpc = nullptr)
      : vocabulary_(&vocabulary), method_(method), rpc_(rpc == nullptr ? AfterSlash(method) : rpc), access_(access) {}

  const char* rpc() const { return rpc_; }
  // The full name, package.Service/Method, for traces.
  const char* method() const { return method_; }
  const char* streaming_rpc() const { return vocabulary_->streaming_rpc; }
  RpcAccess access() const { return access_; }
  // Whether the RPC only observes the server. Such calls are answered during a stop, which does not wait for them. They
  // are not counted, and are logged at debug level only.
  bool observes() const { return access_.scope == Scope::kObserve; }

  const char* text_kinds() const { return vocabulary_->text_kinds; }
  const char* image_kinds() const { return vocabulary_->image_kinds; }
  std::string Of(const FieldPath& path) const { return vocabulary_->name_of(path); }
  std::string Of(std::string_view field) const { return Of(FieldPath{.field = field}); }
  std::string Of(std::string_view field, int64_t index) const { return Of(FieldPath{.field = field, .index = index}); }

 private:
  static constexpr const char* AfterSlash(const char* method) {
    const char* after = method;
    for (const char* at = method; *at != '\0'; ++at) {
      if (*at == '/') after = at + 1;
    }
    return after;
  }

  const FieldVocabulary* vocabulary_;
  const char* method_;
  const char* rpc_;
  RpcAccess access_;
};

// Errors for invalid fields (field, value, rule), and the rule for names.

// INVALID_ARGUMENT "sampling.top_p is 1.5; it must be in (0, 1]".
inline absl::Status FieldError(const std::string& field, const absl::AlphaNum& value, const std::string& limit) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; it must be ", limit));
}

// INVALID_ARGUMENT unless low <= value <= high. `field` makes the name; it is called only for an error.
inline absl::Status CheckFieldRange(absl::FunctionRef<std::string()> field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(field(), value, absl::StrCat("in [", low, ", ", high, "]"));
}

// The rule for names that clients choose for themselves, their calls and their sessions. Logs and headers contain them
// unescaped.
inline constexpr char kNameRule[] = "1 to 128 letters, digits or any of \"._:-\"";
inline bool IsName(const std::string& text) {
  constexpr size_t kMaxBytes = 128;
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace longshort::server

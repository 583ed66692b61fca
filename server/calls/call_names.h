// What is known of an RPC whatever brings its calls: its names, those of its fields, and what its callers need.
// Messages about a wrong call name RPC and field, and what checks a call knows no front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longshort::server {

// Of a text: all of it, or what it consists of.
enum class TextPart { kWhole, kText, kBytes, kIds };

// What a message about a call is about: a field by its path in longshort.v1, whatever protocol the call came by.
struct FieldPath {
  std::string_view field = {};                  // as "sampling.top_p"
  std::optional<int64_t> index = std::nullopt;  // which of several; of sampling.logit_bias, which token
  TextPart part = TextPart::kWhole;
  std::optional<int64_t> id_index = std::nullopt;  // with kIds: which id
};

// How a protocol speaks of what calls have.
struct FieldVocabulary {
  std::string (*name_of)(const FieldPath& path) = nullptr;
  // The kinds of value that a text, and an image, may have: "it must have ..." is said of one that has none.
  const char* text_kinds = "";
  const char* image_kinds = "";
  // The RPC that takes what is too long for one answer of another.
  const char* streaming_rpc = "";
};

// What a credential allows.
enum class Scope : uint8_t {
  kInfer,     // ask models, and see which there are
  kSessions,  // conversations: go on with them, close and move them
  kManage,    // load and unload models
  kObserve,   // health where it is not open to all, reflection, metrics
};

// What a caller needs. server/handlers/session_check.h checks what depends on the fields of a call.
struct RpcAccess {
  Scope scope = Scope::kObserve;
  // Whether it asks how one thing is that the caller names: open to everybody, unless --protect-health.
  bool health = false;
};
inline constexpr RpcAccess kHealthAccess = {.scope = Scope::kObserve, .health = true};

// Immutable. Outlives the calls, which refer to it from any thread.
class CallNames final {
 public:
  // `method` is package.Service/Method. `rpc` is what messages, metrics and logs call it: Method, unless another name
  // is given. All of them are constants.
  constexpr CallNames(const FieldVocabulary& vocabulary, const char* method, RpcAccess access,
                      const char* rpc = nullptr)
      : vocabulary_(&vocabulary), method_(method), rpc_(rpc == nullptr ? AfterSlash(method) : rpc), access_(access) {}

  const char* rpc() const { return rpc_; }
  // The same in full, for traces: package.Service/Method.
  const char* method() const { return method_; }
  const char* streaming_rpc() const { return vocabulary_->streaming_rpc; }
  RpcAccess access() const { return access_; }
  // Whether it only asks how the server is: such a call is answered while the server stops, which does not wait for it;
  // it is not counted, and logged for debugging only.
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

}  // namespace longshort::server

// What is known of an RPC whatever brings its calls: its names, those of its fields, and what its callers need.
// Messages about a wrong call name RPC and field, and what checks a call knows no front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longshort {

// What a message about a call can be about.
enum class CallField {
  kModelName,
  kModelVersion,
  // Documents: all of them, and one. An index says which of several; without one it is the call's only one.
  kTexts,
  kText,
  kSecondTexts,
  kSecondText,
  kPrompt,
  kImages,
  kImage,
  // How texts are scored, and what an answer tells.
  kOptions,
  kTokenLogProbabilities,
  kTopAlternatives,
  kTruncate,
  kTopK,
  kAllLogits,
  // How a text goes on.
  kMaxTokens,
  kCompletions,
  kEcho,
  kStop,
  kTemperature,
  kSamplingTopK,
  kTopP,
  kMinP,
  kRepetitionPenalty,
  kFrequencyPenalty,
  kPresencePenalty,
  kLogitBias,  // the index is the token
  // The conversation that a call goes on with, closes or moves; and those that are listed.
  kSession,
  kSessionId,
  kExpectedTokens,
  kSessionBytes,
  kOwner,
  kKeepOwner,
  kAllOwners,
  kPageSize,
  kPageToken,
};

// Of a text: all of it, or what it consists of.
enum class TextPart { kWhole, kText, kBytes, kIds };

struct FieldPath {
  CallField field = CallField::kModelName;
  std::optional<int64_t> index = std::nullopt;
  TextPart part = TextPart::kWhole;
  std::optional<int64_t> id_index = std::nullopt;  // with kIds: which id
};

// What stands behind the slash of package.Service/Method.
constexpr const char* AfterSlash(const char* method) {
  const char* after = method;
  for (const char* at = method; *at != '\0'; ++at) {
    if (*at == '/') after = at + 1;
  }
  return after;
}

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

// Immutable. Outlives the calls, which refer to it from any thread.
class CallNames {
 public:
  // Of the RPC, for messages, metrics and logs.
  virtual const char* rpc() const = 0;
  // The same in full, for traces: package.Service/Method.
  virtual const char* method() const = 0;
  // Of the RPC that takes what is too long for one answer of this one.
  virtual const char* streaming_rpc() const = 0;
  // Whether it only asks how the server is: such a call is answered while the server stops, which does not wait for it;
  // it is not counted, and logged for debugging only.
  virtual bool observes() const { return false; }
  virtual RpcAccess access() const = 0;
  virtual std::string Of(const FieldPath& path) const = 0;
  // The kinds of value that a text or image may have: "it must have ..." is said of one that has none.
  virtual std::string KindsOf(CallField field) const = 0;

  std::string Of(CallField field) const { return Of(FieldPath{.field = field}); }
  std::string Of(CallField field, int64_t index) const { return Of(FieldPath{.field = field, .index = index}); }

 protected:
  ~CallNames() = default;
};

}  // namespace longshort

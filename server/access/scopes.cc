#include "server/access/scopes.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/calls/field_error.h"

namespace longshort {
namespace {

constexpr std::array kScopes = {Scope::kInfer, Scope::kSessions, Scope::kManage, Scope::kObserve};

struct Row {
  std::string_view rpc;
  RpcAccess access;
};

// Generate, GenerateStream and ScoreText need kSessions too when they name a session (server/handlers/session_check.h).
constexpr std::array kTable = {
    Row{"Generate", {Scope::kInfer}},
    Row{"GenerateStream", {Scope::kInfer}},
    Row{"ScoreText", {Scope::kInfer}},
    Row{"ScoreTexts", {Scope::kInfer}},
    Row{"ClassifyImage", {Scope::kInfer}},
    Row{"Tokenize", {Scope::kInfer}},
    Row{"ListModels", {Scope::kInfer}},
    Row{"GetModel", {Scope::kInfer}},
    // Of others' sessions these four need kManage too (server/handlers/session_check.h).
    Row{"ListSessions", {Scope::kSessions}},
    Row{"CloseSession", {Scope::kSessions}},
    Row{"ExportSession", {Scope::kSessions}},
    Row{"ImportSession", {Scope::kSessions}},
    Row{"LoadModel", {Scope::kManage}},
    Row{"UnloadModel", {Scope::kManage}},
    // The Open Inference Protocol.
    Row{"ModelInfer", {Scope::kInfer}},
    Row{"ModelStreamInfer", {Scope::kInfer}},
    Row{"ModelStreamInfer.request", {Scope::kInfer}},
    Row{"ServerMetadata", {Scope::kInfer}},
    Row{"ModelMetadata", {Scope::kInfer}},
    Row{"ModelConfig", {Scope::kInfer}},
    Row{"ModelStatistics", {Scope::kInfer}},
    Row{"RepositoryIndex", {Scope::kInfer}},
    Row{"SharedMemory", {Scope::kInfer}},
    Row{"TraceSetting", {Scope::kInfer}},
    Row{"LogSettings", {Scope::kInfer}},
    Row{"RepositoryModelLoad", {Scope::kManage}},
    Row{"RepositoryModelUnload", {Scope::kManage}},
    Row{"ServerLive", {Scope::kObserve, true}},
    Row{"ServerReady", {Scope::kObserve, true}},
    Row{"ModelReady", {Scope::kObserve, true}},
    Row{"grpc.health.v1.Health.Check", {Scope::kObserve, true}},
    // Not open: it names models that are hidden from others.
    Row{"grpc.health.v1.Health.List", {Scope::kObserve}},
    Row{"grpc.health.v1.Health.Watch", {Scope::kObserve, true}},
    Row{"grpc.reflection.v1.ServerReflection.ServerReflectionInfo", {Scope::kObserve}},
    Row{"grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo", {Scope::kObserve}},
    Row{"/metrics", {Scope::kObserve}},
};

}  // namespace

const char* NameOf(Scope scope) {
  switch (scope) {
    case Scope::kInfer:
      return "infer";
    case Scope::kSessions:
      return "sessions";
    case Scope::kManage:
      return "manage";
    case Scope::kObserve:
      return "observe";
  }
  return "";
}

absl::Status ReadScopes(std::string_view text, ScopeSet* scopes) {
  *scopes = ScopeSet();
  for (const absl::string_view name : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const auto* const scope =
        std::find_if(kScopes.begin(), kScopes.end(), [name](Scope candidate) { return name == NameOf(candidate); });
    if (scope == kScopes.end() || scopes->Has(*scope)) {
      return FieldError("scopes", Quoted(std::string(text)), kScopesRule);
    }
    scopes->Add(*scope);
  }
  return absl::OkStatus();
}

std::optional<RpcAccess> AccessOf(std::string_view rpc) {
  const auto* const row = std::find_if(kTable.begin(), kTable.end(), [rpc](const Row& r) { return r.rpc == rpc; });
  if (row == kTable.end()) return std::nullopt;
  return row->access;
}

}  // namespace longshort

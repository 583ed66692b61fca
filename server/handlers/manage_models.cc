#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

absl::Status CheckMayManage(const CallRecord& record) {
  if (record.environment().model_control) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      record.names().rpc(), " changes the models that are served; it requires a server with --model-control"));
}

// Unlike other calls, these must name a model even if there is only one.
absl::Status CheckNamedModel(const ModelReference& reference, const CallNames& names) {
  if (reference.name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(names.Of("model.name"), " is empty; it must name a model"));
  }
  return CheckModelReference(reference, names);
}

}  // namespace

absl::Status LoadModel(CallRecord& record, const ModelReference& reference,
                       std::function<void(absl::StatusOr<core::LoadedVersion>)> done) {
  LS_RETURN_IF_ERROR(CheckMayManage(record));
  LS_RETURN_IF_ERROR(CheckNamedModel(reference, record.names()));
  LS_RETURN_IF_ERROR(record.CheckMayUse(reference.name));
  record.environment().manager.LoadVersion(
      reference.name, reference.version,
      [&record, done = std::move(done)](const absl::StatusOr<core::LoadedVersion>& loaded) {
        if (loaded.ok()) record.SetLoadOutcome(loaded->outcome);
        done(loaded);
      });
  return absl::OkStatus();
}

absl::Status UnloadModel(CallRecord& record, const ModelReference& reference, std::function<void(absl::Status)> done) {
  LS_RETURN_IF_ERROR(CheckMayManage(record));
  LS_RETURN_IF_ERROR(CheckNamedModel(reference, record.names()));
  LS_RETURN_IF_ERROR(record.CheckMayUse(reference.name));
  record.environment().manager.Unload(reference.name, reference.version, std::move(done));
  return absl::OkStatus();
}

}  // namespace longshort::server

#include "server/access/access_control.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/access/token_file.h"

namespace longshort::server {

absl::Status Caller::CheckScope(Scope scope, const std::string& what) const {
  if (grant_ == nullptr || grant_->scopes.Has(scope)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(what, " needs the scope ", NameOf(scope),
                                                  ", which the credential of ", grant_->identity->name(),
                                                  " does not have"));
}

absl::Status Caller::CheckPriority(core::Priority priority) const {
  if (grant_ == nullptr || priority <= grant_->max_priority) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("priority high needs the field priority=high, which the credential of ", grant_->identity->name(),
                   " does not have in the token file"));
}

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Open(Options options, Report report) {
  auto control = std::unique_ptr<AccessControl>(new AccessControl(std::move(options)));
  const auto read = [path = control->options_.token_file] { return ReadTokenFile(path); };
  LS_ASSIGN_OR_RETURN(std::string text, read());
  LS_RETURN_IF_ERROR(control->Take(text));
  const auto use = [&control = *control](const std::string& changed) { return control.Take(changed); };
  control->watch_ = std::make_unique<FileWatch>(
      FileWatch::Options{
          .read = read, .use = use, .report = std::move(report), .interval = control->options_.poll_interval},
      std::move(text));
  LS_RETURN_IF_ERROR(control->watch_->Start("the thread that watches the token file"));
  return control;
}

absl::StatusOr<Caller> AccessControl::Identify(const Credentials& credentials, const RpcAccess& needed,
                                               absl::Time now) const {
  if (needed.health && !options_.protect_health) return Caller();
  if (credentials.grant != nullptr) return Caller(credentials.grant);
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const Grant> grant, table()->Find(credentials, ToWallClock(now)));
  return Caller(std::move(grant));
}

absl::Status AccessControl::Admit(const Caller& caller, const char* rpc, const RpcAccess& needed, absl::Time now) {
  if (caller.identity() == nullptr) return absl::OkStatus();
  LS_RETURN_IF_ERROR(caller.CheckScope(needed.scope, rpc));
  return needed.scope == Scope::kObserve ? absl::OkStatus() : caller.identity()->TakeCall(now);
}

absl::Status AccessControl::Take(std::string_view text) {
  LS_ASSIGN_OR_RETURN(const std::vector<AccessEntry> entries, ParseTokenFile(text, options_.token_file));
  const absl::Time now = MonotonicNow();
  for (const AccessEntry& entry : entries) IdentityOf(entry.name)->SetLimits(entry.limits, now);
  auto table =
      std::make_shared<const AccessTable>(entries, [this](const std::string& name) { return IdentityOf(name); });
  const MutexLock lock(mutex_);
  table_.swap(table);
  return absl::OkStatus();
}

std::shared_ptr<Identity> AccessControl::IdentityOf(const std::string& name) {
  std::shared_ptr<Identity>& identity = identities_[name];
  if (identity == nullptr) {
    identity = std::make_shared<Identity>(name, identities_.size() <= kMaxMetricLabels ? name : kOtherIdentities);
  }
  return identity;
}

std::shared_ptr<const AccessTable> AccessControl::table() const {
  const MutexLock lock(mutex_);
  return table_;
}

}  // namespace longshort::server

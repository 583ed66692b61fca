// Access control: identifies the caller of each call and checks its scopes and limits, before anything else runs.
//
// A FileWatch reads the token file every second and compares its content, not its date. New content applies to later
// calls; running calls continue. A file that is wrong or missing changes nothing.
//
// Thread-safe. Calls share a reference to the table, which they copy under a lock held for some nanoseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_watch.h"
#include "base/mutex.h"
#include "server/access/access_table.h"
#include "server/access/identity.h"

namespace longshort::server {

class AccessControl final {
 public:
  struct Options {
    std::string token_file;
    // Health checks also need the scope `observe`.
    bool protect_health = false;
    absl::Duration poll_interval = absl::Seconds(1);
  };
  // Called after each change of the file: OK if its content is now in use, otherwise the reason why not.
  using Report = std::function<void(const absl::Status& status)>;

  // Identities with their own series, in the order of the file; the others share the label kOtherIdentities.
  static constexpr size_t kMaxMetricLabels = 100;
  static constexpr char kOtherIdentities[] = "(other)";  // not a valid name of an identity

  // Errors: those of ReadTokenFile and ParseTokenFile; RESOURCE_EXHAUSTED if the system has no thread for the watch.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Open(Options options, Report report);
  AccessControl(const AccessControl&) = delete;
  AccessControl& operator=(const AccessControl&) = delete;

  // Identifies the caller of a call. Returns the anonymous Caller if the call needs no identity. `now` is
  // MonotonicNow()'s, here and below. Errors: UNAUTHENTICATED without a valid credential.
  absl::StatusOr<Caller> Identify(const Credentials& credentials, const RpcAccess& needed, absl::Time now) const;
  // Checks that the identified caller may make this call. Errors: PERMISSION_DENIED if the credential's scopes do not
  // cover the call; RESOURCE_EXHAUSTED with a Refusal if the identity is over its rate (except for calls with the
  // scope observe).
  static absl::Status Admit(const Caller& caller, const char* rpc, const RpcAccess& needed, absl::Time now);

  // Whether a call's client certificate needs to be read.
  bool uses_certificates() const { return table()->has_certificates(); }

  // Does what the watch's thread does every second.
  void PollFile() { watch_->Look(); }

 private:
  explicit AccessControl(Options options) : options_(std::move(options)) {}

  absl::Status Take(std::string_view text);
  std::shared_ptr<Identity> IdentityOf(const std::string& name);
  std::shared_ptr<const AccessTable> table() const;

  const Options options_;

  // Used by one thread at a time: Open's, then the watch's.
  std::map<std::string, std::shared_ptr<Identity>> identities_;  // never removed: limits outlive a reload

  mutable Mutex mutex_;
  std::shared_ptr<const AccessTable> table_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the other members
};

}  // namespace longshort::server

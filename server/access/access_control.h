// Who may call: asked once for each call, in front of everything else.
//
// A FileWatch reads the token file every second, by its content and not its date. New content holds for calls that come
// later; calls that are under way go on. A file that is wrong, or gone, changes nothing.
//
// Thread-safe. What calls share is a reference to the table, which they take under a lock for some nanoseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_watch.h"
#include "server/access/access_table.h"
#include "server/access/identity.h"

namespace longshort::server {

class AccessControl final {
 public:
  struct Options {
    std::string token_file;
    // Health needs the scope `observe`, too.
    bool protect_health = false;
    absl::Duration look_every = absl::Seconds(1);
  };
  // Receives the result of each change of the file: OK if its content is in use now, otherwise why it is not.
  using Told = std::function<void(const absl::Status& status)>;

  // So many identities, the first that the file names, have series of their own; others share kOtherIdentities.
  static constexpr size_t kMaxMetricLabels = 100;
  static constexpr char kOtherIdentities[] = "(other)";  // no identity can be called so

  // Errors: those of ReadTokenFile and ParseTokenFile; RESOURCE_EXHAUSTED if the system has no thread for the watch.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Open(Options options, Told told);
  AccessControl(const AccessControl&) = delete;
  AccessControl& operator=(const AccessControl&) = delete;

  // Who makes this call; anybody if that is asked of nobody. `now` is MonotonicNow()'s, here and below.
  // Errors: UNAUTHENTICATED without a valid credential.
  absl::StatusOr<Caller> Identify(const Credentials& credentials, const RpcAccess& needed, absl::Time now) const;
  // Whether who was identified for this call may make it.
  // Errors: PERMISSION_DENIED if the credential's scopes do not cover the call; RESOURCE_EXHAUSTED with a Refusal if
  // the identity has made too many (not of calls that observe).
  static absl::Status Admit(const Caller& caller, const char* rpc, const RpcAccess& needed, absl::Time now);

  // Whether a call's certificate needs to be read.
  bool uses_certificates() const { return table()->has_certificates(); }

  // What the watch's thread does every second.
  void LookAtFile() { watch_->Look(); }

 private:
  explicit AccessControl(Options options) : options_(std::move(options)) {}

  absl::Status Take(std::string_view text);
  std::shared_ptr<Identity> IdentityOf(const std::string& name);
  std::shared_ptr<const AccessTable> table() const;

  const Options options_;

  // Used by one thread at a time: Open's, then the watch's.
  std::map<std::string, std::shared_ptr<Identity>> identities_;  // all that there ever were: limits outlive a reload

  mutable std::mutex mutex_;
  std::shared_ptr<const AccessTable> table_;  // guarded by mutex_

  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the other members
};

}  // namespace longshort::server

// Who may call: asked once for each call, in front of everything else.
//
// The token file is looked at every second by a thread of its own, content and not date. What it says twice the same
// holds for calls that come. Calls that are under way go on. A file that is wrong, or gone, changes nothing.
//
// Thread-safe. What calls share is a reference to the table, which they take under a lock for some nanoseconds.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/access_table.h"
#include "server/access/caller.h"
#include "server/access/credentials.h"
#include "server/access/identity.h"

namespace longshort {

class AccessControl final {
 public:
  struct Options {
    std::string token_file;
    // Health needs the scope `observe`, too.
    bool protect_health = false;
    absl::Duration look_every = absl::Seconds(1);
  };
  // Hears of each new content of the file: OK if it holds now, otherwise why it does not.
  using Told = std::function<void(const absl::Status& status)>;

  // So many identities, the first that the file names, have series of their own; others share kOtherIdentities.
  static constexpr size_t kMostMetricLabels = 100;
  static constexpr char kOtherIdentities[] = "(other)";  // no identity can be called so

  // Errors: those of ReadTokenFile and ParseTokenFile.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Open(Options options, Told told);
  ~AccessControl();
  AccessControl(const AccessControl&) = delete;
  AccessControl& operator=(const AccessControl&) = delete;

  // Who makes this call; anybody if that is asked of nobody. `now` is MonotonicNow()'s, here and below.
  // Errors: UNAUTHENTICATED without a valid credential.
  absl::StatusOr<Caller> Identify(const Credentials& credentials, std::string_view rpc, absl::Time now) const;
  // Whether who was identified for this call may make it.
  // Errors: PERMISSION_DENIED if the credential's scopes do not cover the call; RESOURCE_EXHAUSTED with a Refusal if
  // the identity has made too many (not of calls that observe).
  static absl::Status Admit(const Caller& caller, std::string_view rpc, absl::Time now);

  // Whether a call's certificate needs to be read.
  bool uses_certificates() const { return table()->has_certificates(); }

  // What the thread does every second.
  void LookAtFile();

 private:
  AccessControl(Options options, Told told) : options_(std::move(options)), told_(std::move(told)) {}

  absl::Status Take(std::string_view text);
  std::shared_ptr<Identity> IdentityOf(const std::string& name);
  std::shared_ptr<const AccessTable> table() const;
  void Watch();

  const Options options_;
  const Told told_;

  // By one thread at a time: Open, then the watching one.
  std::string seen_;    // the file's text that was taken or found wrong, or why there was none
  std::string looked_;  // the same of the last look
  std::map<std::string, std::shared_ptr<Identity>> identities_;  // all that there ever were: limits outlive a reload

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const AccessTable> table_;
  bool stopping_ = false;
  std::condition_variable stopped_;

  std::thread watcher_;  // last, for it uses all else
};

}  // namespace longshort

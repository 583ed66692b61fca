#include "server/access/tls_watch.h"

#include <sys/stat.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr std::chrono::seconds kLookAfter(1);

void AppendLook(const std::string& path, std::string& look) {
  struct stat file {};
  if (path.empty() || stat(path.c_str(), &file) != 0) return absl::StrAppend(&look, "none;");
  absl::StrAppend(&look, file.st_dev, ":", file.st_ino, ":", file.st_size, ":", file.st_mtim.tv_sec, ".",
                  file.st_mtim.tv_nsec, ":", file.st_ctim.tv_sec, ".", file.st_ctim.tv_nsec, ";");
}

// Another text whenever one of the files was written, replaced, or is an other one behind a link.
std::string LookOf(const TlsFiles& files) {
  std::string look;
  for (const std::string* path : {&files.certificate, &files.key, &files.client_ca, &files.client_crl}) {
    AppendLook(*path, look);
  }
  return look;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsWatch>> TlsWatch::Start(const TlsFiles& files, Handlers handlers) {
  std::string look = LookOf(files);  // before they are read: what is written meanwhile is read again
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> material, TlsMaterial::Load(files, absl::Now()));
  LS_ASSIGN_OR_RETURN(MemoryFile identity, MemoryFile::Create());
  LS_ASSIGN_OR_RETURN(MemoryFile client_authorities, MemoryFile::Create());
  std::unique_ptr<TlsWatch> watch(
      new TlsWatch(files, std::move(handlers), std::move(identity), std::move(client_authorities)));
  watch->taken_ = std::move(look);
  LS_RETURN_IF_ERROR(watch->Publish(std::move(material)));
  try {
    watch->thread_ = std::thread(&TlsWatch::Watch, watch.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the thread that watches certificates: ", error.what()));
  }
  return watch;
}

TlsWatch::~TlsWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

std::shared_ptr<const TlsMaterial> TlsWatch::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

absl::Status TlsWatch::Publish(std::shared_ptr<const TlsMaterial> material) {
  // Another text each time: gRPC begins anew then, and takes up no session that began with other lists.
  const std::string authorities = absl::StrCat("# ", ++published_, "\n", material->ClientAuthoritiesPem());
  LS_RETURN_IF_ERROR(client_authorities_.Write(authorities));
  LS_RETURN_IF_ERROR(identity_.Write(material->IdentityPem()));
  const std::lock_guard lock(mutex_);
  current_ = std::move(material);
  return absl::OkStatus();
}

void TlsWatch::Watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLookAfter, [this] { return ending_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void TlsWatch::Look() {
  std::string look = LookOf(files_);
  // Somebody may be writing yet: a chain without its end is a chain.
  const bool is_whole = look == looked_;
  looked_ = look;
  if (!is_whole || look == taken_) return;
  absl::StatusOr<std::shared_ptr<const TlsMaterial>> material = TlsMaterial::Load(files_, absl::Now());
  const absl::Status status = material.ok() ? Publish(*material) : material.status();
  if (status.ok()) {
    taken_ = std::move(look);
    told_wrong_.clear();
    handlers_.replaced(**material);
    return;
  }
  if (status.message() == told_wrong_) return;
  told_wrong_ = std::string(status.message());
  handlers_.broken(status);
}

}  // namespace longshort

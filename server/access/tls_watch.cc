#include "server/access/tls_watch.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

void AppendState(const std::string& path, std::string& state) {
  struct stat file {};
  if (path.empty() || stat(path.c_str(), &file) != 0) return absl::StrAppend(&state, "none;");
  absl::StrAppend(&state, file.st_dev, ":", file.st_ino, ":", file.st_size, ":", file.st_mtim.tv_sec, ".",
                  file.st_mtim.tv_nsec, ":", file.st_ctim.tv_sec, ".", file.st_ctim.tv_nsec, ";");
}

// A text that changes when a file is written, replaced, or its link points to another one.
std::string StateOf(const TlsFiles& files) {
  std::string state;
  for (const std::string* path : {&files.certificate, &files.key, &files.client_ca, &files.client_crl}) {
    AppendState(*path, state);
  }
  return state;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsWatch>> TlsWatch::Start(const TlsFiles& files, Handlers handlers) {
  std::string state = StateOf(files);  // before reading, so that a write during it is noticed
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> material, TlsMaterial::Load(files, absl::Now()));
  std::unique_ptr<TlsWatch> watch(new TlsWatch(std::move(handlers)));
  LS_RETURN_IF_ERROR(watch->Publish(std::move(material)));
  const auto use = [&watch = *watch, files](const std::string&) -> absl::Status {
    LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> changed, TlsMaterial::Load(files, absl::Now()));
    return watch.Publish(std::move(changed));
  };
  const auto report = [&watch = *watch](const absl::Status& status) {
    if (!status.ok()) return watch.handlers_.broken(status);
    watch.handlers_.replaced(*watch.current());
  };
  watch->watch_ = std::make_unique<FileWatch>(
      FileWatch::Options{.read = [files] { return StateOf(files); }, .use = use, .report = report}, std::move(state));
  LS_RETURN_IF_ERROR(watch->watch_->Start("the thread that watches certificates"));
  return watch;
}

std::shared_ptr<const TlsMaterial> TlsWatch::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

absl::Status TlsWatch::Publish(std::shared_ptr<const TlsMaterial> material) {
  LS_RETURN_IF_ERROR(handlers_.publish(*material));
  const MutexLock lock(mutex_);
  current_ = std::move(material);
  return absl::OkStatus();
}

}  // namespace longshort::server

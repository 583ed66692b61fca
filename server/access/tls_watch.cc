#include "server/access/tls_watch.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

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
      FileWatch::Options{.read = [files] { return LookOf(files); }, .use = use, .report = report}, std::move(look));
  LS_RETURN_IF_ERROR(watch->watch_->Start("the thread that watches certificates"));
  return watch;
}

std::shared_ptr<const TlsMaterial> TlsWatch::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

absl::Status TlsWatch::Publish(std::shared_ptr<const TlsMaterial> material) {
  LS_RETURN_IF_ERROR(handlers_.publish(*material));
  const std::lock_guard lock(mutex_);
  current_ = std::move(material);
  return absl::OkStatus();
}

}  // namespace longshort::server

#include "server/access/tls_watch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace longshort {
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

absl::Status Failed() {
  return absl::UnavailableError(absl::StrCat("a file in memory: ", std::system_category().message(errno)));
}

bool WriteAll(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create() {
  const int descriptor = memfd_create("longshort", MFD_CLOEXEC);
  if (descriptor < 0) return Failed();
  MemoryFile file(descriptor);
  if (access(file.path().c_str(), R_OK) != 0) {
    return absl::UnavailableError(absl::StrCat("a file in memory is not at ", file.path(),
                                               "; TLS needs /proc: ", std::system_category().message(errno)));
  }
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), writes_(other.writes_) {}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

absl::Status MemoryFile::Write(std::string_view content) {
  const int written = memfd_create("longshort", MFD_CLOEXEC);
  if (written < 0) return Failed();
  const absl::Cleanup close_written = [written] { close(written); };
  const timespec time = {.tv_sec = ++writes_, .tv_nsec = 0};
  const timespec times[] = {time, time};
  if (!WriteAll(written, content) || futimens(written, times) != 0) return Failed();
  // At once, under the old number: who has opened the old file reads that to its end.
  return dup3(written, descriptor_, O_CLOEXEC) < 0 ? Failed() : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TlsWatch>> TlsWatch::Start(const TlsFiles& files, Handlers handlers) {
  std::string look = LookOf(files);  // before they are read: what is written meanwhile is read again
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> material, TlsMaterial::Load(files, absl::Now()));
  LS_ASSIGN_OR_RETURN(MemoryFile identity, MemoryFile::Create());
  LS_ASSIGN_OR_RETURN(MemoryFile client_authorities, MemoryFile::Create());
  std::unique_ptr<TlsWatch> watch(new TlsWatch(std::move(identity), std::move(client_authorities)));
  LS_RETURN_IF_ERROR(watch->Publish(std::move(material)));
  const auto use = [&watch = *watch, files](const std::string&) -> absl::Status {
    LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> changed, TlsMaterial::Load(files, absl::Now()));
    return watch.Publish(std::move(changed));
  };
  const auto report = [&watch = *watch, handlers = std::move(handlers)](const absl::Status& status) {
    if (!status.ok()) return handlers.broken(status);
    handlers.replaced(*watch.current());
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
  // Another text each time: gRPC begins anew then, and takes up no session that began with other lists.
  const std::string authorities = absl::StrCat("# ", ++published_, "\n", material->ClientAuthoritiesPem());
  LS_RETURN_IF_ERROR(client_authorities_.Write(authorities));
  LS_RETURN_IF_ERROR(identity_.Write(material->IdentityPem()));
  const std::lock_guard lock(mutex_);
  current_ = std::move(material);
  return absl::OkStatus();
}

}  // namespace longshort

// Simulates changes of the machine's clock. LONGSHORT_WALL_CLOCK names a file of 8 bytes: the seconds (int64) by which
// this program's wall clock is ahead of the machine's. They may change at any time. The monotonic clock is unchanged.
//
// Replaces libc's function for the whole program, including its libraries.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

// Never unmapped: threads ask for the time until the process is gone.
const volatile int64_t* MapSeconds() {
  const char* const path = std::getenv("LONGSHORT_WALL_CLOCK");
  if (path == nullptr) return nullptr;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  void* const mapped = file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) std::abort();
  close(file);
  return static_cast<const volatile int64_t*>(mapped);
}

// Zero-initialised before any code runs; until it is set the clock is the machine's.
const volatile int64_t* g_seconds = MapSeconds();

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME && g_seconds != nullptr) time->tv_sec += *g_seconds;
  return result;
}

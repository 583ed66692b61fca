// Shows a person that a call is still running, and for how long.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "clients/cpp/terminal.h"

namespace longshort {

// From construction to destruction one line at the terminal is kept up to date, "scoring book.txt  12 s"; nothing
// remains of it. Writes nothing if `terminal.error` is no terminal. Nobody else may write there meanwhile.
class Progress final {
 public:
  Progress(Terminal& terminal, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Run();

  Terminal& terminal_;
  const std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace longshort

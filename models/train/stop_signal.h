// Ctrl-C and SIGTERM as a question that a long run asks now and then.
#pragma once

namespace longshort {

// While it lives, the first SIGINT or SIGTERM is only noted; the second, of either kind, ends the process. Signals that
// were ignored before stay ignored. One at a time.
class StopSignal final {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool received() const;
};

}  // namespace longshort

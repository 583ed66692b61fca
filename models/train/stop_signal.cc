#include "models/train/stop_signal.h"

#include <csignal>

namespace longshort {
namespace {

volatile std::sig_atomic_t signals_received = 0;

void Set(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);  // what is being written is written to its end
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  signals_received = 0;
  Set([](int) { signals_received = 1; });
}

StopSignal::~StopSignal() { Set(SIG_DFL); }

bool StopSignal::received() const { return signals_received != 0; }

}  // namespace longshort

#include "server/lifecycle/signals.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

namespace longshort::server {
namespace {

// Wakes the watcher's thread so that it ends. Ignored if another process sends it.
constexpr int kEndWatch = SIGUSR2;
// Base of the exit status of a process that a signal ended, as in shells.
constexpr int kExitBase = 128;

// Whether the process was started with the signal ignored, as by `nohup`.
bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// A library may create a thread before main, which does not inherit that the signals are blocked. If such a thread
// receives one, this blocks it there and sends it again, so that the watcher receives it.
void PassOn(int number, siginfo_t* /*info*/, void* context) {
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, number);
  kill(getpid(), number);
}

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (!IsIgnored(SIGHUP)) sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGALRM);
  sigaddset(&signals, kEndWatch);
  return signals;
}

}  // namespace

SignalWatcher::SignalWatcher() : signals_(WatchedSignals()) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  struct sigaction pass_on = {};
  pass_on.sa_sigaction = PassOn;
  pass_on.sa_flags = SA_SIGINFO | SA_RESTART;
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&signals_, number) == 1) sigaction(number, &pass_on, nullptr);
  }
  // These signals must not end the server: a client closed its connection (SIGPIPE), the log file has reached the size
  // limit (SIGXFSZ), or a log rotation tool sent its usual signal (SIGUSR1).
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGUSR1, SIG_IGN);
}

SignalWatcher::~SignalWatcher() {
  alarm(0);
  ending_ = true;
  if (thread_.started()) pthread_kill(thread_.handle(), kEndWatch);
  thread_.Join();
}

void SignalWatcher::Stop() {
  if (!stop_requested()) kill(getpid(), SIGTERM);
}

void SignalWatcher::ExitAfter(unsigned int seconds, int status) {
  exit_status_ = status;
  alarm(seconds);
}

void SignalWatcher::Watch() {
  for (int received = 0; sigwait(&signals_, &received) == 0 && !ending_;) {
    if (received == SIGALRM && exit_status_ >= 0) _exit(exit_status_);
    if (received == SIGALRM || received == kEndWatch) continue;
    if (stop_.HasBeenNotified()) _exit(kExitBase + received);
    stop_.Notify();
  }
}

}  // namespace longshort::server

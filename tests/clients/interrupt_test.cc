// A program of its own: every thread of it must have been started after the watcher.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "absl/synchronization/notification.h"
#include "clients/cpp/terminal.h"
#include "gtest/gtest.h"

namespace longshort::client::interrupt_test {

TEST(InterruptWatcher, CallsBackForEachSignalInAThreadOfItsOwn) {
  absl::Notification first;
  std::atomic<int> calls = 0;
  std::thread::id thread;
  {
    const InterruptWatcher watcher([&] {
      if (++calls == 1) {
        thread = std::this_thread::get_id();
        first.Notify();
      }
    });
    // To the process, as Ctrl-C is; blocked in this thread, so the watcher's takes it.
    kill(getpid(), SIGINT);
    first.WaitForNotification();
  }
  EXPECT_EQ(calls, 1);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(InterruptWatcher, AnotherSignalChangesNothing) {
  absl::Notification interrupted;
  const InterruptWatcher watcher([&] { interrupted.Notify(); });
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGTERM);
  interrupted.WaitForNotification();
}

}  // namespace longshort::client::interrupt_test

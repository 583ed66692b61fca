// The order in which connections use the server's I/O thread: one turn of each client after another, so that a client
// with many connections or requests delays mostly its own.
//
// Thread: the I/O thread.
#pragma once

// clang-format off
#include <utility>  // Boost 1.74's awaitable.hpp needs it
// clang-format on
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <string>

#include "absl/functional/any_invocable.h"

namespace longshort::server {

class ClientTurns final {
 public:
  // Destroyed before `context`: it owns the coroutines that wait.
  explicit ClientTurns(boost::asio::io_context& context) : context_(context) {}
  ClientTurns(const ClientTurns&) = delete;
  ClientTurns& operator=(const ClientTurns&) = delete;

  // Returns whether the client's turn begins at once; if not, the caller must Wait. A turn lasts until its coroutine
  // waits for something.
  bool Begin(const std::string& client) {
    if (std::exchange(taken_, true)) return false;
    last_ = client;
    boost::asio::post(context_, [this] { BeginNext(); });
    return true;
  }
  // Returns when the turn begins. `client` must stay until then.
  boost::asio::awaitable<void> Wait(const std::string& client) {
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        [this, &client](auto&& resume) { waiting_[client].emplace_back(std::move(resume)); },
        boost::asio::use_awaitable);
  }

 private:
  // Begins turns for up to kTime, and then lets run what else is ready, such as reads. To ask the system for that after
  // each turn would take longer than a short request.
  void BeginNext() {
    constexpr std::chrono::microseconds kTime(200);
    taken_ = !waiting_.empty();
    if (!taken_) return;
    boost::asio::post(context_, [this] { BeginNext(); });
    const auto end = std::chrono::steady_clock::now() + kTime;
    do {
      auto next = waiting_.upper_bound(last_);
      if (next == waiting_.end()) next = waiting_.begin();
      last_ = next->first;
      absl::AnyInvocable<void()> resume = std::move(next->second.front());
      next->second.pop_front();
      if (next->second.empty()) waiting_.erase(next);
      resume();
    } while (!waiting_.empty() && std::chrono::steady_clock::now() < end);
  }

  boost::asio::io_context& context_;
  std::map<std::string, std::deque<absl::AnyInvocable<void()>>> waiting_;  // by client; no deque is empty
  std::string last_;                                                       // the client whose turn began last
  bool taken_ = false;  // a turn began, and BeginNext has not run since
};

}  // namespace longshort::server

// A session as others see it: the request that goes on with it, the engine that it moves to, the caches that have its
// pages, and the metrics. The sessions themselves: core/session/session_store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache/parked_pages.h"

namespace longshort::core {

// A conversation that a request goes on with, or begins (core/session/session_store.h); the client's that asks.
struct SessionReference {
  std::string id;
  // Only go on: it must be there.
  bool must_exist = false;
  // How many tokens it must hold; 0 if it must be new.
  std::optional<int64_t> expected_tokens = std::nullopt;
};

// A session as it leaves one engine and enters another.
struct SessionArchive {
  // All that was said so far. What follows the last one has not been asked for.
  std::vector<int32_t> tokens;
  // Of the model whose pages these are: LanguageModelInfo::cache_layout.
  std::string cache_layout;
  // What the cache has of it; nothing if the pages had been given up. An engine that cannot use them, for want of room
  // or because its model lays pages out in another way, reads the tokens again when the session goes on.
  std::optional<ParkedPages> cached;
};

// The most that a session may be, for who must make room before it comes.
struct SessionSize {
  int64_t tokens = 0;
  int64_t cache_bytes = 0;
};

// How the session store, and paused requests, tell an engine that pages parked in its caches are no longer needed.
//
// Thread-safe.
class SessionPages {
 public:
  virtual ~SessionPages() = default;

  // Nobody wants this place any more: what was parked was closed, has ended, or went on. Soon frees its
  // pages, if they are still there. Called with nothing locked; must not block.
  virtual void GiveUp(const ParkedPlace& place) = 0;
};

// Hears how many sessions a store has, for metrics.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  // How many sessions there are after a call, and the tokens that they hold. Called with the store locked, one call at
  // a time; must not block, or call the store.
  virtual void OnSessions(int64_t sessions, int64_t tokens) = 0;
};

}  // namespace longshort::core

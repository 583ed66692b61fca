// A session as its users see it: the request that continues it, the engine that it moves to, the caches that hold its
// pages, and the metrics. SessionStore (core/session/session_store.h) owns the sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/cache/cache_grid.h"

namespace longshort::core {

// The session that a request continues or creates. It belongs to the request's client.
struct SessionReference {
  // Whose session it is; the request's client if it is not set.
  std::optional<std::string> owner = std::nullopt;
  std::string id = {};
  // The session must exist; the request does not create one.
  bool must_exist = false;
  // The number of tokens that the session must hold; 0 if it must be new.
  std::optional<int64_t> expected_tokens = std::nullopt;
  // If a generation ends early, the session keeps its prompt and the tokens that were delivered.
  bool keep_partial = false;
};

// The tokens of a session, or the first of them. They are shared, so that no call copies a long conversation.
struct SharedTokens {
  std::shared_ptr<const std::vector<int32_t>> owner;
  absl::Span<const int32_t> tokens;
};

// A session in transit from one engine to another.
struct SessionArchive {
  // All tokens of the conversation. The model has not read the last one yet.
  std::vector<int32_t> tokens;
  // LanguageModelInfo::cache_layout of the model that wrote the pages.
  std::string cache_layout;
  // The cache pages; nullopt if they were evicted. An engine that cannot use them, because its cache is full or its
  // model has another page layout, reads the tokens again when the session continues.
  std::optional<ParkedPages> cached;
};

// The largest possible session, for callers that reserve memory before they receive one.
struct SessionSize {
  int64_t tokens = 0;
  int64_t cache_bytes = 0;
};

// How the session store, and paused requests, notify an engine that pages parked in its caches are no longer needed.
//
// Thread-safe.
class SessionPages {
 public:
  virtual ~SessionPages() = default;

  // Nothing refers to `place` any longer: its session or request has ended or continued elsewhere. The engine frees its
  // pages soon, if they are still parked. The caller holds no lock. Must not block.
  virtual void Release(const ParkedPlace& place) = 0;
};

// Receives the size of a store, for metrics.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  // The number of sessions after an operation, and the tokens that they hold. Called with the store locked, one call at
  // a time; must not block or call the store.
  virtual void OnSessions(int64_t sessions, int64_t tokens) = 0;
};

}  // namespace longshort::core

// A session as it leaves one engine and enters another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache/parked_pages.h"

namespace longshort {

struct SessionArchive {
  // All that was said so far. What follows the last one has not been asked for.
  std::vector<int32_t> tokens;
  // Of the model whose pages these are: LanguageModel::CacheLayout.
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

}  // namespace longshort

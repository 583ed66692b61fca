#include "server/rpc/stream_limiter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort::server {

absl::StatusOr<int64_t> StreamLimiter::Add(const std::string& connection, std::function<void()> give_way) {
  std::function<void()> in_the_way;
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto held = connections_.find(connection);
    if (held != connections_.end() && held->second >= max_of_connection_) {
      return absl::ResourceExhaustedError(absl::StrCat("this connection has ", max_of_connection_,
                                                       " such streams, its maximum; end one of them first"));
    }
    if (static_cast<int64_t>(streams_.size()) >= max_) {
      const auto stream = FindVictim();
      in_the_way = std::move(stream->give_way);
      RemoveLocked(stream);
    }
    number = ++last_;
    const auto of = connections_.try_emplace(connection, 0).first;
    ++of->second;
    streams_.push_back({number, of, std::move(give_way)});
    by_number_.emplace(number, std::prev(streams_.end()));
  }
  if (in_the_way != nullptr) in_the_way();
  return number;
}

void StreamLimiter::Touch(int64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(stream);
  if (found != by_number_.end()) streams_.splice(streams_.end(), streams_, found->second);
}

void StreamLimiter::Remove(int64_t stream) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_number_.find(stream); found != by_number_.end()) RemoveLocked(found->second);
}

StreamLimiter::Streams::iterator StreamLimiter::FindVictim() {
  int64_t most = 0;
  for (const auto& [connection, streams] : connections_) most = std::max(most, streams);
  return std::find_if(streams_.begin(), streams_.end(),
                      [most](const Stream& stream) { return stream.connection->second == most; });
}

void StreamLimiter::RemoveLocked(Streams::iterator stream) {
  if (--stream->connection->second == 0) connections_.erase(stream->connection);
  by_number_.erase(stream->number);
  streams_.erase(stream);
}

}  // namespace longshort::server

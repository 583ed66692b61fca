#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/transports/grpc/standard_services.h"

namespace longshort::server {

absl::StatusOr<int64_t> StreamLimiter::Add(const std::string& connection, std::function<void()> end_stream) {
  std::function<void()> end_other;
  int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    const auto held = connections_.find(connection);
    if (held != connections_.end() && held->second >= max_of_connection_) {
      return absl::ResourceExhaustedError(absl::StrCat("this connection has ", max_of_connection_, " ", kind_,
                                                       ", the maximum per connection; end one first"));
    }
    if (static_cast<int64_t>(streams_.size()) >= max_) {
      const auto stream = FindStreamToEnd();
      end_other = std::move(stream->end_stream);
      RemoveLocked(stream);
    }
    number = ++last_;
    const auto of = connections_.try_emplace(connection, 0).first;
    ++of->second;
    streams_.push_back({number, of, std::move(end_stream)});
    by_number_.emplace(number, std::prev(streams_.end()));
  }
  if (end_other != nullptr) end_other();
  return number;
}

void StreamLimiter::Touch(int64_t stream) {
  const MutexLock lock(mutex_);
  const auto found = by_number_.find(stream);
  if (found != by_number_.end()) streams_.splice(streams_.end(), streams_, found->second);
}

void StreamLimiter::Remove(int64_t stream) {
  const MutexLock lock(mutex_);
  if (const auto found = by_number_.find(stream); found != by_number_.end()) RemoveLocked(found->second);
}

StreamLimiter::Streams::iterator StreamLimiter::FindStreamToEnd() {
  int64_t max = 0;
  for (const auto& [connection, streams] : connections_) max = std::max(max, streams);
  return std::find_if(streams_.begin(), streams_.end(),
                      [max](const Stream& stream) { return stream.connection->second == max; });
}

void StreamLimiter::RemoveLocked(Streams::iterator stream) {
  if (--stream->connection->second == 0) connections_.erase(stream->connection);
  by_number_.erase(stream->number);
  streams_.erase(stream);
}

}  // namespace longshort::server

#include "server/standard_services/held_streams.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<int64_t> HeldStreams::Add(const std::string& connection, std::function<void()> give_way) {
  std::function<void()> in_the_way;
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto count = of_connection_.find(connection);
    if (count != of_connection_.end() && count->second >= most_of_connection_) {
      return absl::ResourceExhaustedError(absl::StrCat("this connection holds ", most_of_connection_,
                                                       " such streams, as many as it may; end one of them"));
    }
    if (static_cast<int64_t>(streams_.size()) >= most_) {
      const auto longest = streams_.find(silence_.front());
      in_the_way = std::move(longest->second.give_way);
      RemoveLocked(longest);
    }
    number = ++last_;
    silence_.push_back(number);
    streams_.emplace(number, Stream{connection, std::move(give_way), std::prev(silence_.end())});
    ++of_connection_[connection];
  }
  if (in_the_way != nullptr) in_the_way();
  return number;
}

void HeldStreams::Touch(int64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found != streams_.end()) silence_.splice(silence_.end(), silence_, found->second.place);
}

void HeldStreams::Remove(int64_t stream) {
  const std::lock_guard lock(mutex_);
  if (const auto found = streams_.find(stream); found != streams_.end()) RemoveLocked(found);
}

void HeldStreams::RemoveLocked(std::map<int64_t, Stream>::iterator stream) {
  const auto count = of_connection_.find(stream->second.connection);
  if (--count->second == 0) of_connection_.erase(count);
  silence_.erase(stream->second.place);
  streams_.erase(stream);
}

}  // namespace longshort

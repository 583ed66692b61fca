#include "core/sampling/stop_strings.h"

#include <algorithm>
#include <utility>

namespace longshort::core {

StopStrings::Matcher::Matcher(const std::string& text) : pattern(text), fallback(text.size() + 1, 0) {
  size_t border = 0;
  for (size_t end = 1; end < pattern.size(); ++end) {
    while (border > 0 && pattern[end] != pattern[border]) border = fallback[border];
    if (pattern[end] == pattern[border]) ++border;
    fallback[end + 1] = border;
  }
}

bool StopStrings::Matcher::Advance(char byte) {
  while (matched > 0 && pattern[matched] != byte) matched = fallback[matched];
  if (pattern[matched] == byte) ++matched;
  return matched == pattern.size();
}

StopStrings::StopStrings(const std::vector<std::string>& stop_strings)
    : matchers_(stop_strings.begin(), stop_strings.end()) {}

std::string StopStrings::Append(std::string_view bytes) {
  for (char byte : bytes) {
    held_ += byte;
    for (Matcher& matcher : matchers_) {
      const bool complete = matcher.Advance(byte);
      if (complete && (met_ == nullptr || matcher.pattern.size() > met_->size())) met_ = &matcher.pattern;
    }
    if (met_ != nullptr) {
      held_.resize(held_.size() - met_->size());
      return Flush();
    }
  }
  size_t longest = 0;  // the number of held bytes that may begin a stop string
  for (const Matcher& matcher : matchers_) longest = std::max(longest, matcher.matched);
  std::string released = held_.substr(0, held_.size() - longest);
  held_.erase(0, released.size());
  return released;
}

std::string StopStrings::Flush() { return std::exchange(held_, std::string()); }

}  // namespace longshort::core

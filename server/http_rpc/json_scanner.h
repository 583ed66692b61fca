// The parts of a JSON text: punctuation, words, numbers and strings, one after another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace longshort::server {

class JsonScanner {
 public:
  virtual ~JsonScanner() = default;

 protected:
  explicit JsonScanner(std::string_view json)
      : begin_(json.data()), next_(json.data()), end_(json.data() + json.size()) {}

  // An error at this place of the text.
  virtual absl::Status Wrong(std::string_view what) const = 0;
  // The error for a value that is not `wanted`.
  absl::Status WrongKind(std::string_view wanted) const;
  // The number of the next byte, from 1.
  int64_t place() const { return next_ - begin_ + 1; }

  // All functions below skip space first.
  bool AtEnd() {
    SkipSpace();
    return next_ == end_;
  }
  bool NextIs(char wanted) { return !AtEnd() && *next_ == wanted; }
  // Skips this character, or word, if it is the next one.
  bool Take(char wanted);
  bool TakeWord(std::string_view word);
  // Sets `text` to a number, or to the content of a string that stands for one.
  absl::Status ReadNumber(std::string_view wanted, std::string& text);
  // Whether JSON allows this number.
  static bool IsNumber(std::string_view text);
  absl::Status ReadString(std::string& text);

 private:
  const char* Found() const;
  void SkipSpace();
  // Skips all characters of a string that stand for themselves.
  absl::Status SkipPlain();
  absl::Status ReadEscape(std::string& text);
  // Reads "\uXXXX".
  absl::Status ReadCodeUnit(char32_t& unit);

  const char* const begin_;
  const char* next_;
  const char* const end_;
};

}  // namespace longshort::server

// The parts of a JSON text: punctuation, words, numbers and strings, one after another. A MemoryMeter counts the
// strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "base/memory_meter.h"

namespace longshort {

// Whole numbers are uint64_t, or int64_t if they have a sign; those of more bits, and fractions, are double.
using JsonNumber = std::variant<int64_t, uint64_t, double>;

class JsonScanner {
 public:
  virtual ~JsonScanner() = default;

 protected:
  // The meter must outlive the scanner.
  JsonScanner(std::string_view json, MemoryMeter& meter)
      : meter_(meter), begin_(json.data()), next_(json.data()), end_(json.data() + json.size()) {}

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
  bool NextIsNumber() { return !AtEnd() && (*next_ == '-' || (*next_ >= '0' && *next_ <= '9')); }
  // Skips this character, or word, if it is the next one.
  bool Take(char wanted);
  bool TakeWord(std::string_view word);
  // Sets `text` to a number, or to the content of a string that stands for one.
  absl::Status ReadNumber(std::string_view wanted, std::string& text);
  // Whether JSON allows this number.
  static bool IsNumber(std::string_view text);
  // Reads a value that is not a string, a list or an object.
  absl::Status ReadNumber(JsonNumber& number);
  // Sets `text`, and adds to the meter what the text grows by.
  absl::Status ReadString(std::string& text);
  // Skips a list, an object or a string, whatever it has. To read it later, ReadAgain reads there next.
  absl::Status SkipNested();
  const char* next() const { return next_; }
  void ReadAgain(const char* place) { next_ = place; }

  MemoryMeter& meter_;

 private:
  const char* Found() const;
  void SkipSpace();
  // Reads the text of a number as it stands.
  absl::Status ReadDigits(std::string_view wanted, std::string_view& digits);
  // Skips all characters of a string that stand for themselves.
  absl::Status SkipPlain();
  absl::Status ReadEscape(std::string& text);
  // Reads "\uXXXX".
  absl::Status ReadCodeUnit(char32_t& unit);

  const char* const begin_;
  const char* next_;
  const char* const end_;
};

}  // namespace longshort

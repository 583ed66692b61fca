// Finds the first stop string in a text that comes piece by piece, and holds back what may belong to one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace longshort::core {

// Bytes are released as soon as no stop string can contain them any more, and not before:
//
//   stop string "</s>", pieces "a<" "/b" "</" "s>c"  ->  releases "a", "</b", "", "" and has met "</s>"
//
// What is held is the longest end of the text that begins a stop string. The match that ends first counts; of those
// that end at the same byte, the longest.
class StopStrings {
 public:
  // None may be empty. Without any, all bytes are released at once.
  explicit StopStrings(const std::vector<std::string>& stop_strings);
  StopStrings(const StopStrings&) = delete;
  StopStrings& operator=(const StopStrings&) = delete;

  // Takes the next bytes and returns those released. When a stop string is met, these are all that stand before it;
  // the rest of the text is dropped. REQUIRES: met() is null.
  std::string Append(std::string_view bytes);
  // At the end of the text: releases what was held.
  std::string Flush();

  // The stop string that was met, or null.
  const std::string* met() const { return met_; }

 private:
  // Follows one stop string as Knuth, Morris and Pratt do.
  struct Matcher {
    explicit Matcher(const std::string& pattern);
    // Takes one byte; true if the pattern ends with it.
    bool Advance(char byte);

    std::string pattern;
    std::vector<size_t> fallback;  // [n] for n matched bytes: the next longest match that they end with
    size_t matched = 0;            // how many bytes at the end of the text begin the pattern; the longest
  };

  std::vector<Matcher> matchers_;
  std::string held_;
  const std::string* met_ = nullptr;
};

}  // namespace longshort::core

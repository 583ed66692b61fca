// Finds the first stop string in a stream of text, and holds back bytes that may belong to one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace longshort::core {

// Bytes are released as soon as no stop string can contain them, and not before:
//
//   stop string "</s>", pieces "a<" "/b" "</" "s>c"  ->  releases "a", "</b", "", "" and has met "</s>"
//
// Holds back the longest suffix of the text that begins a stop string. The match that ends first counts; of those that
// end at the same byte, the longest.
class StopStrings {
 public:
  // None may be empty. Without stop strings, all bytes are released at once.
  explicit StopStrings(const std::vector<std::string>& stop_strings);
  StopStrings(const StopStrings&) = delete;
  StopStrings& operator=(const StopStrings&) = delete;

  // Appends bytes and returns the released ones. When a stop string is met, these are all bytes before it; the rest of
  // the text is dropped. REQUIRES: met() is null.
  std::string Append(std::string_view bytes);
  // At the end of the text: releases the held bytes.
  std::string Flush();

  // The stop string that was met, or null.
  const std::string* met() const { return met_; }

 private:
  // Matches one stop string with the algorithm of Knuth, Morris and Pratt.
  struct Matcher {
    explicit Matcher(const std::string& pattern);
    // Appends one byte; true if it completes the pattern.
    bool Advance(char byte);

    std::string pattern;
    std::vector<size_t> fallback;  // [n] for n matched bytes: the length of the next longest match
    size_t matched = 0;            // length of the longest prefix of the pattern that ends the text
  };

  std::vector<Matcher> matchers_;
  std::string held_;
  const std::string* met_ = nullptr;
};

}  // namespace longshort::core

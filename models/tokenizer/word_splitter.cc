#include "models/tokenizer/word_splitter.h"

namespace longshort::models {
namespace {

// The end of the characters of one class that follow each other from `begin` on.
size_t EndOfRun(std::string_view text, size_t begin, CodePointClass of, const CodePointClasses& classes) {
  size_t end = begin;
  while (end < text.size()) {
    const CodePoint next = CodePointAt(text, end);
    if (classes.Of(next.value) != of) break;
    end += next.bytes;
  }
  return end;
}

// The length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of `text`; 0 if there is none.
size_t ContractionLength(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return text.size() > 2 && text[2] == 'e' ? 3 : 0;
    case 'l':
      return text.size() > 2 && text[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

}  // namespace

size_t EndOfWord(std::string_view text, size_t begin, const CodePointClasses& classes) {
  if (const size_t contraction = ContractionLength(text.substr(begin)); contraction > 0) return begin + contraction;
  // A word may have one space before it.
  const size_t inner = begin + (text[begin] == ' ' && begin + 1 < text.size() ? 1 : 0);
  const CodePointClass of = classes.Of(CodePointAt(text, inner).value);
  if (of != CodePointClass::kSpace) return EndOfRun(text, inner, of, classes);
  // The last space before another character belongs to the next word, unless it is the only one.
  const size_t end = EndOfRun(text, inner, CodePointClass::kSpace, classes);
  if (end == text.size()) return end;
  const size_t last = end - CodePointBefore(text, end).bytes;
  return last > begin ? last : end;
}

}  // namespace longshort::models

// The flags of one command: their values go into the caller's variables, their help is laid out in columns.
//
//   FlagSet flags;
//   flags.Add("top-k", "N", "Keep the N likeliest tokens.", &top_k);
//   absl::StatusOr<std::vector<std::string>> files = flags.Parse(arguments);
//
// Forms: --name=value, --name value, and for bool --name, --name=true, --name=false. "--" ends the flags; "-" is no
// flag. Types: std::string, bool, int32_t, int64_t, uint64_t, double, absl::Duration (1m30s); std::optional of one of
// them is set only if the flag is given; std::vector of one collects every use of the flag. TokenBias is ID:VALUE.
//
// A set of its own for every command, unlike process-wide flags: a flag that a command does not have is an error there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace longshort {

// What is added to one token's logit.
struct TokenBias {
  int32_t token = 0;
  float bias = 0;
};

// Each reads the whole of `text` into `value` and returns whether it could.
bool ParseFlagValue(absl::string_view text, std::string* value);
bool ParseFlagValue(absl::string_view text, bool* value);
bool ParseFlagValue(absl::string_view text, int32_t* value);
bool ParseFlagValue(absl::string_view text, int64_t* value);
bool ParseFlagValue(absl::string_view text, uint64_t* value);
bool ParseFlagValue(absl::string_view text, double* value);
bool ParseFlagValue(absl::string_view text, absl::Duration* value);
bool ParseFlagValue(absl::string_view text, TokenBias* value);

template <typename T>
bool ParseFlagValue(absl::string_view text, std::optional<T>* value) {
  return ParseFlagValue(text, &value->emplace());
}

template <typename T>
bool ParseFlagValue(absl::string_view text, std::vector<T>* value) {
  return ParseFlagValue(text, &value->emplace_back());
}

class FlagSet final {
 public:
  // `value` keeps its default unless the flag is given, and must outlive Parse. `value_name` stands for the value in
  // the help; empty for bool.
  template <typename T>
  void Add(std::string name, std::string value_name, std::string help, T* value) {
    flags_.push_back({std::move(name), std::move(value_name), std::move(help),
                      [value](absl::string_view text) { return ParseFlagValue(text, value); }});
  }

  // Reads flags wherever they stand; returns the other arguments in order.
  // Errors: INVALID_ARGUMENT naming the flag.
  absl::StatusOr<std::vector<std::string>> Parse(absl::Span<const std::string> arguments) const;

  // Reads flags up to the first argument that is none; returns that one and all behind it, unread.
  absl::StatusOr<std::vector<std::string>> ParseLeading(absl::Span<const std::string> arguments) const;

  // One flag a line, in the order of Add.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string value_name;
    std::string help;
    std::function<bool(absl::string_view)> parse;
  };

  // Reads the flag at `arguments[*next]` and moves `next` behind it and its value.
  absl::Status ParseFlag(absl::Span<const std::string> arguments, size_t* next) const;

  std::vector<Flag> flags_;
};

}  // namespace longshort

// The options of a program or of one of its commands, and the types of their variables. Each option has one row:
//
//   OptionTable table;
//   table.Add("threads", "N", "Threads of one model step.", &options.threads, {1, 1024});
//   table.AddHelp(&help);
//   absl::Status status = table.Parse(arguments);
//
// Parse reads arguments and files into the rows' variables and checks the ranges. The rows also produce --help, the
// tables of the docs, and files that set the same variables (see options()).
//
// Forms: --name=value, --name value, and for switches --name, --name=true, --name=false. The last value of an option
// wins. --flagfile=FILE, which every table has, inserts the options in FILE, one --name=value per line. Empty lines and
// lines that begin with # are skipped. Files may name other files, up to 8 deep.
//
// Abseil's flags are not used: their names have no dashes, and they belong to the process, so that commands could not
// have their own options and tests could not create tables repeatedly.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace longshort {

// --- the types of an option's variable: parsing, range checks, and text form ---
//
// std::string, bool, int32_t, int64_t, uint64_t, double, absl::Duration (30s, 1m30s), and of each of them
//   std::optional  set only if the option is given
//   std::vector    all uses of the option, in order

// Parses all of `text`. Errors: INVALID_ARGUMENT with the rule ("must be a whole number"); `value` may then have
// changed.
absl::Status ReadOptionValue(const std::string& text, std::string* value);
absl::Status ReadOptionValue(const std::string& text, bool* value);
absl::Status ReadOptionValue(const std::string& text, int32_t* value);
absl::Status ReadOptionValue(const std::string& text, int64_t* value);
absl::Status ReadOptionValue(const std::string& text, uint64_t* value);
absl::Status ReadOptionValue(const std::string& text, double* value);
absl::Status ReadOptionValue(const std::string& text, absl::Duration* value);

template <typename T>
absl::Status ReadOptionValue(const std::string& text, std::optional<T>* value) {
  return ReadOptionValue(text, &value->emplace());
}

template <typename T>
absl::Status ReadOptionValue(const std::string& text, std::vector<T>* value) {
  return ReadOptionValue(text, &value->emplace_back());
}

// A value in the form of an argument; empty if there is none. A switch (bool) shows no default.
std::string OptionValueText(const std::string& value);
std::string OptionValueText(int32_t value);
std::string OptionValueText(int64_t value);
std::string OptionValueText(uint64_t value);
std::string OptionValueText(double value);
std::string OptionValueText(absl::Duration value);

template <typename T>
std::string OptionValueText(const std::optional<T>& value) {
  return value.has_value() ? OptionValueText(*value) : "";
}

template <typename T>
std::string OptionValueText(const std::vector<T>& /*value*/) {
  return "";
}

// The range of a number or a duration, including both ends.
template <typename T>
struct OptionRange {
  T low;
  T high;
  // Whether 0, which is less than `low`, is allowed too. It disables a feature.
  bool or_zero = false;

  // False for NaN.
  bool Holds(T value) const { return (value >= low && value <= high) || (or_zero && value == T()); }

  // Completes "it must be ...".
  std::string Rule() const {
    return absl::StrCat(or_zero ? "0 or " : "", "in [", OptionValueText(low), ", ", OptionValueText(high), "]");
  }
  // For --help: "1 to 1024".
  std::string Text() const {
    return absl::StrCat(or_zero ? "0, or " : "", OptionValueText(low), " to ", OptionValueText(high));
  }
  // Errors: INVALID_ARGUMENT with Rule().
  absl::Status Check(T value) const {
    return Holds(value) ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("must be ", Rule()));
  }
};

// The number of an option's variable: the variable itself, or the value in its optional.
template <typename T>
struct OptionNumber {
  using Type = T;
  static T Of(const T& value) { return value; }
};
template <typename T>
struct OptionNumber<std::optional<T>> {
  using Type = T;
  static T Of(const std::optional<T>& value) { return *value; }
};

// The value that means "no limit": the largest value of the type.
template <typename T>
constexpr T NoLimit() {
  if constexpr (std::is_same_v<T, absl::Duration>) {
    return absl::InfiniteDuration();
  } else {
    return std::numeric_limits<T>::max();
  }
}

// --- the table ---

// The form of help: none, text for a terminal, the same with the common options, or Markdown tables for the docs.
enum class HelpForm { kNone, kText, kAll, kMarkdown };

class OptionTable final {
 public:
  // Reads a value into its variable. Errors complete the sentence "--name is 'value'; it ...".
  using Reader = std::function<absl::Status(const std::string& value)>;

  struct Option {
    // The title in help above this option and those that follow; empty: the previous option's section continues.
    std::string section = {};
    // Whether the option belongs to every command of a program. Only --help=all lists it. Add sets this.
    bool is_common = false;
    std::string name;
    // Placeholder for the value in help, which names its unit ("N", "BYTES", "duration"). Empty: the option is a
    // switch.
    std::string hint;
    // The value of the variable when the row was added; empty: none.
    std::string default_text;
    // The allowed values, for example "1 to 1024"; empty: `help` describes them.
    std::string range = {};
    // The meaning, and the reason for the default.
    std::string help;
    // Whether the value is an integer.
    bool is_integer = false;
    Reader reader;
    // Returns the variable's current value in the form of an argument.
    std::function<std::string()> value = {};
  };

  // Sets the title in help of the options added next.
  void BeginSection(std::string title) { next_section_ = std::move(title); }
  // Sets the title of the options added next, which belong to every command.
  void BeginCommonSection(std::string title) {
    BeginSection(std::move(title));
    is_common_ = true;
  }

  // The option's default is the current value of `value`, which must outlive the table.
  template <typename T>
  void Add(const std::string& name, const std::string& hint, const std::string& help, T* value) {
    Add(Row(name, hint, help, value));
  }
  template <typename T>
  void Add(const std::string& name, const std::string& hint, const std::string& help, T* value,
           const std::type_identity_t<OptionRange<typename OptionNumber<T>::Type>>& range) {
    Option row = Row(name, hint, help, value);
    row.range = range.Text();
    row.reader = [read = row.reader, value, range](const std::string& text) {
      const absl::Status status = read(text);
      return status.ok() ? range.Check(OptionNumber<T>::Of(*value)) : status;
    };
    Add(std::move(row));
  }
  // An optional limit. The argument 0 means none, and the variable is then NoLimit<T>().
  template <typename T>
  void AddLimit(const std::string& name, const std::string& hint, const std::string& help, T* value, T max) {
    Option row = Row(name, hint, help, value);
    row.value = [value] { return OptionValueText(*value == NoLimit<T>() ? T() : *value); };
    row.default_text = row.value();
    const OptionRange<T> range = {T(), max};
    row.range = range.Text();
    row.reader = [value, range](const std::string& text) {
      absl::Status status = ReadOptionValue(text, value);
      if (status.ok()) status = range.Check(*value);
      if (status.ok() && *value == T()) *value = NoLimit<T>();
      return status;
    };
    Add(std::move(row));
  }
  // An option whose argument is one of several words, each of which stands for a value.
  template <typename T>
  void AddChoice(const std::string& name, const std::vector<std::pair<std::string, T>>& choices,
                 const std::string& help, T* value) {
    std::vector<std::string> words;
    std::string default_word;
    for (const auto& [word, meaning] : choices) {
      words.push_back(word);
      if (meaning == *value) default_word = word;
    }
    AddCustom(name, Joined(words), default_word, help, [choices, words, value](const std::string& text) {
      for (const auto& [word, meaning] : choices) {
        if (word == text) return *value = meaning, absl::OkStatus();
      }
      return NoneOf(words);
    });
  }
  void AddSwitch(std::string name, std::string help, bool* value) {
    AddCustom(std::move(name), "", "", std::move(help),
              [value](const std::string& text) { return ReadOptionValue(text, value); });
  }
  // --help, and --help=all or --help=markdown. `other` is kAll or kMarkdown.
  void AddHelp(HelpForm* form, HelpForm other);
  void AddCustom(std::string name, std::string hint, std::string default_text, std::string help, Reader reader);
  void Add(Option option);

  // The options in the order in which they were added.
  absl::Span<const Option> options() const { return options_; }

  // Names that other programs have for what `option` (with its value) does here. Errors for them suggest it.
  void AddOtherNames(absl::Span<const std::string_view> names, const std::string& option) {
    for (const std::string_view name : names) other_names_.emplace(name, option);
  }

  // The three Parse functions set the variables. They differ in the handling of arguments that are not options ("-" is
  // not an option). Parse rejects them.
  // Errors: INVALID_ARGUMENT naming the option (and file and line), its value and the rule; for an unknown option, the
  // nearest known name.
  absl::Status Parse(absl::Span<const std::string> arguments) const;
  // Returns the other arguments in order. "--" ends the options.
  absl::StatusOr<std::vector<std::string>> ParseAmongOthers(absl::Span<const std::string> arguments) const;
  // Stops at the first other argument. Returns it and all that follow.
  absl::StatusOr<std::vector<std::string>> ParseLeading(absl::Span<const std::string> arguments) const;

  // The options with hint, default, range and help, in the order in which they were added, wrapped at 100 columns. kAll
  // includes the common options.
  std::string Help(HelpForm form = HelpForm::kAll) const;
  // The same as a Markdown table for each section. `shown` formats an option's name and hint; null: --name=HINT.
  using Shown = std::function<std::string(const Option& option)>;
  std::string Markdown(const Shown& shown = nullptr) const;

 private:
  template <typename T>
  static Option Row(const std::string& name, const std::string& hint, const std::string& help, T* value) {
    return {.name = name,
            .hint = hint,
            .default_text = OptionValueText(*value),
            .help = help,
            .is_integer = std::is_integral_v<typename OptionNumber<T>::Type>,
            .reader = [value](const std::string& text) { return ReadOptionValue(text, value); },
            .value = [value] { return OptionValueText(*value); }};
  }
  // The words as a hint ("text|json"), and the error for an unknown word ("must be text or json").
  static std::string Joined(const std::vector<std::string>& words);
  static absl::Status NoneOf(const std::vector<std::string>& words);

  static const Option& FlagFile();
  static std::string HelpOf(const Option& option);

  // Parses the option at `arguments[*next]` and advances `next` past the option and its value.
  absl::Status ParseOption(absl::Span<const std::string> arguments, size_t* next, int depth) const;
  absl::Status ParseFile(const std::string& path, int depth) const;
  const Option* Find(const std::string& name) const;
  absl::Status UnknownOption(const std::string& name) const;

  std::string next_section_;
  bool is_common_ = false;
  std::vector<Option> options_;
  std::map<std::string, std::string, std::less<>> other_names_;
};

}  // namespace longshort

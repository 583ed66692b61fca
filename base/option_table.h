// The options of a program or of one of its commands. An option is described once, by its row:
//
//   OptionTable table;
//   table.Add("threads", "N", "Threads of one model step.", &options.threads, {1, 1024});
//   table.AddHelp(&help);
//   absl::Status status = table.Parse(arguments);
//
// Parse reads arguments and files into the rows' variables and checks the ranges. --help, its tables for the docs, and
// files that set the same variables (see options()) come from the rows too.
//
// Forms: --name=value, --name value, and for switches --name, --name=true, --name=false. The last value of an option
// wins. --flagfile=FILE, which every table has, reads FILE in its place: one --name=value a line; empty lines and lines
// that begin with # are skipped; files may name files, 8 deep.
//
// Why not Abseil's flags: their names have no dashes, and they belong to the process, so that commands could not have
// options of their own, and tests could not make them twice.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/option_values.h"

namespace longshort {

// What --help asks for: nothing, text for a terminal, the same with the common options, or Markdown tables for the
// docs.
enum class HelpForm { kNone, kText, kAll, kMarkdown };

class OptionTable final {
 public:
  // Reads a value into its variable. Errors complete the sentence "--name is 'value'; it ...".
  using Reader = std::function<absl::Status(const std::string& value)>;

  struct Option {
    // The title that help puts above this option and those behind it; empty: that of the option before.
    std::string section = {};
    // Of every command of a program: only --help=all lists it. So are those behind it.
    bool is_common = false;
    std::string name;
    // Stands for the value in help, and says its unit ("N", "BYTES", "duration"). Empty: the option is a switch.
    std::string hint;
    // The value that the variable had when the row was added; empty: none.
    std::string default_text;
    // Which values are allowed, as in "1 to 1024"; empty: `help` says it.
    std::string range = {};
    // Meaning, and the reason of the default.
    std::string help;
    // Whether the value is a whole number.
    bool is_integer = false;
    Reader reader;
    // The variable's value now, as it could be given.
    std::function<std::string()> value = {};
  };

  // The title that help puts above the options added next.
  void BeginSection(std::string title) { next_section_ = std::move(title); }
  // The options added next are those of every command.
  void BeginCommonSection(std::string title) {
    BeginSection(std::move(title));
    is_common_ = true;
  }

  // The option's default is what `value` holds now. `value` must outlive the table.
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
  // A limit that may be absent: 0 is given for none, and the variable holds NoLimit<T>() then.
  template <typename T>
  void AddLimit(const std::string& name, const std::string& hint, const std::string& help, T* value, T most) {
    Option row = Row(name, hint, help, value);
    row.value = [value] { return OptionValueText(*value == NoLimit<T>() ? T() : *value); };
    row.default_text = row.value();
    const OptionRange<T> range = {T(), most};
    row.range = range.Text();
    row.reader = [value, range](const std::string& text) {
      absl::Status status = ReadOptionValue(text, value);
      if (status.ok()) status = range.Check(*value);
      if (status.ok() && *value == T()) *value = NoLimit<T>();
      return status;
    };
    Add(std::move(row));
  }
  // One of several words, each of which stands for a value.
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

  // In the order they were added.
  absl::Span<const Option> options() const { return options_; }

  // Each sets the variables. Errors: INVALID_ARGUMENT naming the option (and file and line), its value and what it must
  // be, with the nearest known name for an unknown option. They differ in what they do with arguments that are no
  // options ("-" is none, too): Parse refuses them.
  absl::Status Parse(absl::Span<const std::string> arguments) const;
  // Returns them in order. "--" ends the options.
  absl::StatusOr<std::vector<std::string>> ParseAmongOthers(absl::Span<const std::string> arguments) const;
  // Stops at the first; returns it and all behind it, unread.
  absl::StatusOr<std::vector<std::string>> ParseLeading(absl::Span<const std::string> arguments) const;

  // The options with hint, default, range and help, in the order they were added, wrapped at 100 columns. kAll includes
  // the common ones.
  std::string Help(HelpForm form = HelpForm::kAll) const;
  // The same as one Markdown table for each section. `shown` writes an option's name and hint; unset: --name=HINT.
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
  // The words as a hint ("text|json"), and the error for another one ("must be text or json").
  static std::string Joined(const std::vector<std::string>& words);
  static absl::Status NoneOf(const std::vector<std::string>& words);

  static const Option& FlagFile();
  static std::string HelpOf(const Option& option);

  // Reads the option at `arguments[*next]` and moves `next` behind it and its value.
  absl::Status ParseOption(absl::Span<const std::string> arguments, size_t* next, int depth) const;
  absl::Status ParseFile(const std::string& path, int depth) const;
  const Option* Find(const std::string& name) const;
  absl::Status UnknownOption(const std::string& name) const;

  std::string next_section_;
  bool is_common_ = false;
  std::vector<Option> options_;
};

}  // namespace longshort

// The options of a program or of one of its commands: parsed from arguments and files into the caller's variables, and
// explained by --help.
//
//   OptionTable table;
//   table.Add("threads", "N", "Threads of one model step.", &options.threads);
//   table.AddSwitch("help", "Print this and exit.", &help);
//   absl::Status status = table.Parse(arguments);
//
// Forms: --name=value, --name value, and for switches --name, --name=true, --name=false. The last value of an option
// wins. --flagfile=FILE, which every table has, reads FILE in its place: one --name=value a line; empty lines and lines
// that begin with # are passed over; files may name files, 8 deep.
//
// Why not Abseil's flags: their names have no dashes, and they are the process's, so that commands could not have
// options of their own, nor tests make them twice.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/option_values.h"

namespace longshort {

class OptionTable final {
 public:
  // Reads a value into its variable. Errors complete the sentence "--name is 'value'; it ...".
  using Reader = std::function<absl::Status(const std::string& value)>;

  // The title that --help puts above the options added next.
  void BeginSection(std::string title) { next_section_ = std::move(title); }

  // `hint` stands for the value in --help ("host:port"); `help` gives unit, meaning and the reason of the default,
  // which is what `value` holds now. `value` must outlive the table.
  template <typename T>
  void Add(const std::string& name, const std::string& hint, const std::string& help, T* value) {
    AddCustom(name, hint, OptionValueText(*value), help,
              [value](const std::string& text) { return ReadOptionValue(text, value); });
  }
  void AddSwitch(std::string name, std::string help, bool* value) {
    AddCustom(std::move(name), "", "", std::move(help),
              [value](const std::string& text) { return ReadOptionValue(text, value); });
  }
  // An empty `hint` makes a switch.
  void AddCustom(std::string name, std::string hint, std::string default_text, std::string help, Reader reader);

  // Each sets the variables. Errors: INVALID_ARGUMENT naming the option (and file and line), with the nearest known
  // name for an unknown one. They differ in what they do with arguments that are no options ("-" is none, too):
  // Parse refuses them.
  absl::Status Parse(absl::Span<const std::string> arguments) const;
  // Returns them in order. "--" ends the options.
  absl::StatusOr<std::vector<std::string>> ParseAmongOthers(absl::Span<const std::string> arguments) const;
  // Stops at the first; returns it and all behind it, unread.
  absl::StatusOr<std::vector<std::string>> ParseLeading(absl::Span<const std::string> arguments) const;

  // Every option with hint, default and help, in the order they were added, wrapped at 100 columns.
  std::string Help() const;

 private:
  struct Option {
    std::string section;
    std::string name;
    std::string hint;
    std::string default_text;
    std::string help;
    Reader reader;
  };

  static const Option& FlagFile();
  static std::string HelpOf(const Option& option);

  // Reads the option at `arguments[*next]` and moves `next` behind it and its value.
  absl::Status ParseOption(absl::Span<const std::string> arguments, size_t* next, int depth) const;
  absl::Status ParseFile(const std::string& path, int depth) const;
  const Option* Find(const std::string& name) const;
  absl::Status UnknownOption(const std::string& name) const;

  std::string next_section_;
  std::vector<Option> options_;
};

}  // namespace longshort

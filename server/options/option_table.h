// A program's options by name: reads `--name=value` and `--name value`, from arguments and from files, and prints
// --help.
//
// Each option is bound to a variable, whose value at binding time is the default that --help shows. A small table of
// our own, because Abseil's flags cannot have names with dashes, and are globals, which tests cannot make twice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longshort {

class OptionTable {
 public:
  // Reads a value into the bound variable. Its error says what the value must be; Parse puts the option's name before
  // it.
  using Reader = std::function<absl::Status(const std::string&)>;

  // `hint` stands for the value in --help ("host:port"); `help` gives unit, meaning and the reason of the default.
  // The variables must outlive the table.
  void AddText(std::string name, std::string hint, std::string help, std::string* value);
  void AddNumber(std::string name, std::string hint, std::string help, int64_t* value);
  void AddDuration(std::string name, std::string help, absl::Duration* value);
  // `--name` and `--name=true` set it, `--name=false` clears it.
  void AddSwitch(std::string name, std::string help, bool* value);
  void AddCustom(std::string name, std::string hint, std::string default_text, std::string help, Reader reader);

  // Sets the variables, the last value of an option winning. `--flagfile=FILE` reads FILE in its place: one
  // `--name=value` a line; empty lines and lines that begin with # are passed over; files may name files, 8 deep.
  // Errors: INVALID_ARGUMENT naming the option (and file and line), with the nearest known name for an unknown one.
  absl::Status Parse(const std::vector<std::string>& arguments) { return ParseAtDepth(arguments, 0); }

  // Every option with hint, default and help, in the order they were added, wrapped at 100 columns.
  std::string Help() const;

 private:
  struct Option {
    std::string name;
    std::string hint;
    std::string default_text;
    std::string help;
    bool is_switch = false;
    Reader reader;
  };

  absl::Status ParseAtDepth(const std::vector<std::string>& arguments, int depth);
  absl::Status ParseFile(const std::string& path, int depth);
  const Option* Find(const std::string& name) const;
  absl::Status UnknownOption(const std::string& name) const;

  std::vector<Option> options_;
};

}  // namespace longshort

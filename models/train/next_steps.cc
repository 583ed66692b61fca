#include "models/train/next_steps.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "models/train/shown_labels.h"

namespace longshort::models {
namespace {

namespace fs = std::filesystem;

// The repository of models that do not lie in one.
constexpr char kRepository[] = "my_models";

// The program of this name that lies beside `program`, or else the one that the shell finds.
std::string Sibling(const fs::path& program, const std::string& name) {
  std::error_code unknown;
  const fs::path sibling = program.parent_path() / name;
  return program.has_parent_path() && fs::exists(sibling, unknown) ? ShellWord(sibling.string()) : name;
}

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string InputCommand(std::string_view text) {
  constexpr size_t kLongest = 100;
  text = text.substr(0, std::find_if(text.begin(), text.end(), absl::ascii_iscntrl) - text.begin());
  if (text.size() > kLongest) text = Beginning(text, std::min(text.rfind(' ', kLongest), kLongest));
  return text.empty() ? "" : absl::StrCat("printf %s ", ShellWord(std::string(text)));
}

std::string NextSteps(const std::string& directory, const std::string& held_out, const std::string& program,
                      const std::string& input, const std::string& call) {
  std::error_code unknown;
  fs::path place = fs::weakly_canonical(fs::absolute(directory, unknown), unknown);
  if (!place.has_filename()) place = place.parent_path();
  // As the user wrote it, if that has the three parts.
  const fs::path given = fs::path(directory).has_filename() ? fs::path(directory) : fs::path(directory).parent_path();
  fs::path repository = given.parent_path().parent_path(), model = place.parent_path();
  if (repository.empty()) repository = given.parent_path().has_filename() ? "." : model.parent_path();
  std::string text = absl::StrCat("the model is in ", directory, held_out.empty() ? "" : ": held-out ", held_out, "\n");
  if (given.filename().string().find_first_not_of("0123456789") != std::string::npos) {
    repository = kRepository;
    model = repository / place.filename();
    absl::StrAppend(&text, "move it:   mkdir -p ", ShellWord(model.string()), " && mv ", ShellWord(directory), " ",
                    ShellWord((model / "1").string()), "\n");
  }
  return absl::StrCat(text, "serve it:  ", Sibling(program, "longshort-server"),
                      " --model-repository=", ShellWord(repository.string()),
                      "\ncall it:   ", input.empty() ? "" : absl::StrCat(input, " | "), Sibling(program, "longshort"),
                      " --model=", ShellWord(model.filename().string()), " ", call, "\n");
}

}  // namespace longshort::models

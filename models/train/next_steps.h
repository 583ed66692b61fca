// What a user does with a new model.
#pragma once

#include <string>
#include <string_view>

namespace longshort::models {

// In lines: where the model is, its figures, and the commands that serve it and call it. One that is not in a folder
// REPOSITORY/NAME/VERSION is moved to one first. `call` is the end of the client's command; it is for a shell, as is
// `input`, which is piped to it unless it is empty. `program` is how this program was called: the server and the client
// are named in the same way if they lie beside it.
std::string NextSteps(const std::string& directory, const std::string& held_out, const std::string& program,
                      const std::string& input, const std::string& call);

// A shell's command that prints the beginning of a text: at most 100 bytes of its first line, up to the end of a word.
// "" if that is empty.
std::string InputCommand(std::string_view text);

// `word` as a word of a POSIX shell: in single quotes if it needs them.
std::string ShellWord(const std::string& word);

}  // namespace longshort::models

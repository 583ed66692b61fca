// `longshort tokenize`: converts text to the model's token ids.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

class TokenizeCommand final : public Command {
 public:
  TokenizeCommand()
      : Command("tokenize", "Convert texts to the model's token ids",
                R"(Usage: longshort tokenize [options] [FILE|-]...

Prints the token ids of each file (or of standard input) as one line, which other commands accept with --ids.
With --pieces, each line is one token: its id and its bytes.

Examples:
  printf 'a cat' | longshort tokenize
  printf 'a cat' | longshort tokenize --pieces
  printf 'a cat' | longshort tokenize | longshort score --ids
)") {}

  void AddOptions(OptionTable& table) override {
    table.AddSwitch("pieces", "Print one token in each line, with its bytes.", &pieces_);
    table.AddSwitch("ids", "The input is a list of token ids, which the server checks and returns.", &ids_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    for (const std::string& name : DocumentNames(arguments)) {
      LS_RETURN_IF_ERROR(Tokenize(name, context));
    }
    return ExitCode::kOk;
  }

 private:
  absl::Status Tokenize(const std::string& name, const CommandContext& context) const {
    LS_ASSIGN_OR_RETURN(std::string document, AsUsage(ReadDocument(name, context.terminal)));
    v1::TokenizeRequest request;
    *request.mutable_model() = context.model;
    LS_ASSIGN_OR_RETURN(*request.mutable_input(), AsUsage(MakeInput(std::move(document), ids_)));
    LS_ASSIGN_OR_RETURN(const v1::TokenizeResponse response, context.client.Tokenize(request));

    std::ostream& output = context.terminal.output;
    if (context.options.json) {
      WriteJsonLine(response, output);
    } else if (pieces_) {
      for (int i = 0; i < response.ids_size(); ++i) {
        output << absl::StrFormat("%6d  %s\n", response.ids(i), QuoteBytes(response.pieces(i)));
      }
    } else {
      output << absl::StrJoin(response.ids(), " ") << "\n";
    }
    return absl::OkStatus();
  }

  bool pieces_ = false;
  bool ids_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() { return std::make_unique<TokenizeCommand>(); }

}  // namespace longshort::client

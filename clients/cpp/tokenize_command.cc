// `longshort tokenize`: converts text to the model's token ids.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/failures.h"
#include "clients/cpp/inputs.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

class TokenizeCommand final : public Command {
 public:
  TokenizeCommand()
      : Command("tokenize", "Convert texts to the model's token ids",
                R"(Usage: longshort tokenize [options] [FILE|-]...

Prints the token ids of each file (or of standard input) as one line, which other commands accept with --ids.
With --pieces, each line is one token: its id and its bytes. With --offsets, each line is one token: its id, where it
begins and ends in the input, in bytes and then in characters, and its bytes.

Examples:
  printf 'a cat' | longshort tokenize
  printf 'a cat' | longshort tokenize --pieces
  printf 'a café' | longshort tokenize --offsets
  printf 'a cat' | longshort tokenize | longshort score --ids
)") {}

  void AddOptions(OptionTable& table) override {
    table.AddSwitch("pieces", "Print one token in each line, with its bytes.", &pieces_);
    table.AddSwitch("offsets", "Print one token in each line, with its place in the input.", &offsets_);
    table.AddSwitch("ids", "The input is a list of token ids, which the server checks and returns.", &ids_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (arguments.empty()) LS_RETURN_IF_ERROR(Tokenize("-", context));
    for (const std::string& name : arguments) LS_RETURN_IF_ERROR(Tokenize(name, context));
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
    } else if (pieces_ || offsets_) {
      LS_RETURN_IF_ERROR(PrintTokens(response, output));
    } else {
      output << absl::StrJoin(response.ids(), " ") << "\n";
    }
    return absl::OkStatus();
  }

  absl::Status PrintTokens(const v1::TokenizeResponse& response, std::ostream& output) const {
    const int ids = response.ids_size();
    if (response.pieces_size() != ids) {
      return UsageError("the model has no vocabulary: its ids stand for no bytes");
    }
    const bool has_offsets = response.byte_begins_size() == ids && response.byte_ends_size() == ids &&
                             response.character_begins_size() == ids && response.character_ends_size() == ids;
    if (offsets_ && !has_offsets) {
      return UsageError(ids_ ? "--offsets needs text: ids have no places"
                             : "the server gives no offsets: it is older than this client");
    }
    for (int i = 0; i < ids; ++i) {
      output << absl::StrFormat("%6d", response.ids(i));
      if (offsets_) {
        output << absl::StrFormat("  %6d %6d  %6d %6d", response.byte_begins(i), response.byte_ends(i),
                                  response.character_begins(i), response.character_ends(i));
      }
      output << "  " << QuoteBytes(response.pieces(i)) << "\n";
    }
    return absl::OkStatus();
  }

  bool pieces_ = false;
  bool offsets_ = false;
  bool ids_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() { return std::make_unique<TokenizeCommand>(); }

}  // namespace longshort::client

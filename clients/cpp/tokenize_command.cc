// `longshort tokenize`: a text as the model's token ids.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/tables.h"

namespace longshort {
namespace {

class TokenizeCommand final : public Command {
 public:
  absl::string_view name() const override { return "tokenize"; }
  absl::string_view summary() const override { return "Turn texts into the model's token ids"; }
  absl::string_view description() const override {
    return R"(Usage: longshort tokenize [options] [FILE|-]...

Prints the token ids of each file (or of standard input) on a line; other commands take such a line back with --ids.
With --pieces, one token a line: its id, and the bytes that it stands for.

Examples:
  printf 'a cat' | longshort tokenize
  printf 'a cat' | longshort tokenize --pieces
  printf 'a cat' | longshort tokenize | longshort score --ids
)";
  }
  void AddOptions(OptionTable& table) override {
    table.AddSwitch("pieces", "One token a line, with its bytes.", &pieces_);
    table.AddSwitch("ids", "The input lists token ids, which are checked and returned.", &ids_);
  }

  ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    for (const std::string& name : DocumentNames(arguments)) {
      const ExitCode code = Tokenize(name, context);
      if (code != ExitCode::kOk) return code;
    }
    return ExitCode::kOk;
  }

 private:
  ExitCode Tokenize(const std::string& name, const CommandContext& context) const {
    absl::StatusOr<std::string> document = ReadDocument(name, context.terminal);
    if (!document.ok()) return FailUsage(context.terminal, document.status().message());
    absl::StatusOr<v1::Input> input = MakeInput(*std::move(document), ids_);
    if (!input.ok()) return FailUsage(context.terminal, input.status().message());

    v1::TokenizeRequest request;
    *request.mutable_model() = context.model;
    *request.mutable_input() = *std::move(input);
    const absl::StatusOr<v1::TokenizeResponse> response = context.client.Tokenize(request);
    if (!response.ok()) return FailCall(context, response.status());

    std::ostream& output = context.terminal.output;
    if (context.options.json) {
      WriteJsonLine(*response, output);
    } else if (pieces_) {
      for (int i = 0; i < response->ids_size(); ++i) {
        output << absl::StrFormat("%6d  %s\n", response->ids(i), QuoteBytes(response->pieces(i)));
      }
    } else {
      output << absl::StrJoin(response->ids(), " ") << "\n";
    }
    return ExitCode::kOk;
  }

  bool pieces_ = false;
  bool ids_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() { return std::make_unique<TokenizeCommand>(); }

}  // namespace longshort

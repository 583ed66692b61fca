// `longshort score`: how likely the model finds each file.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/progress.h"
#include "clients/cpp/token_line.h"

namespace longshort {
namespace {

constexpr char kHeader[] = "    tokens     scored  log-likelihood  bits/byte  bits/char   tokens/s  document\n";

std::string Bits(bool present, double bits) { return present ? absl::StrFormat("%.4f", bits) : "-"; }

std::string ScoreLine(const v1::TextScore& score, const std::string& document) {
  const double seconds = score.timings().prefill_seconds();
  const std::string rate =
      seconds > 0 ? absl::StrFormat("%.0f", static_cast<double>(score.token_count()) / seconds) : "-";
  return absl::StrFormat("%10d %10d %15.4f %10s %10s %10s  %s\n", score.token_count(), score.scored_token_count(),
                         score.log_likelihood(), Bits(score.has_bits_per_byte(), score.bits_per_byte()),
                         Bits(score.has_bits_per_character(), score.bits_per_character()), rate, document);
}

class ScoreCommand final : public Command {
 public:
  absl::string_view name() const override { return "score"; }
  absl::string_view summary() const override { return "Score texts: log-likelihood, bits per byte"; }
  absl::string_view description() const override {
    return R"(Usage: longshort score [options] [FILE|-]...

Scores each file (or standard input) as one document: the model reads it from its first byte to its last and carries its memory
on, however long it is. Prints a line a document:
  tokens          tokens in the document
  scored          how many of them were scored: all but the first, which nothing comes before
  log-likelihood  sum of the natural logarithms of the scored tokens' probabilities (nats)
  bits/byte       -log2 likelihood per scored byte; bits/char per character, for character vocabularies
  tokens/s        how fast the server read it
With --log-probabilities a line a scored token comes behind it: log-probability, id, bytes. With --json, a ScoreTextResponse a
document, in the order of the documents.

Examples:
  longshort score book.txt
  longshort score chapter-*.txt
  printf 'The cat sat.' | longshort score --log-probabilities --top-alternatives=3
  longshort score --json book.txt | jq '.scores[0].bits_per_byte'
)";
  }
  void AddOptions(OptionTable& table) override {
    table.AddSwitch("log-probabilities", "Print the log-probability of each token.", &log_probabilities_);
    table.Add("top-alternatives", "N", "With it, the N likeliest tokens at each place; 0 to 20.", &top_alternatives_);
    table.AddSwitch("ids", "The input lists token ids instead of text.", &ids_);
  }

  ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    v1::GetModelRequest request;
    *request.mutable_model() = context.model;
    const absl::StatusOr<v1::Model> model = context.client.GetModel(request);
    if (!model.ok()) return FailCall(context, model.status());

    if (!context.options.json) context.terminal.output << kHeader << std::flush;
    for (const std::string& name : DocumentNames(arguments)) {
      const ExitCode code = Score(name, *model, context);
      if (code != ExitCode::kOk) return code;
    }
    return ExitCode::kOk;
  }

 private:
  ExitCode Score(const std::string& name, const v1::Model& model, const CommandContext& context) const {
    absl::StatusOr<std::string> document = ReadDocument(name, context.terminal);
    if (!document.ok()) return FailUsage(context.terminal, document.status().message());
    absl::StatusOr<v1::Input> input = MakeInput(*std::move(document), ids_);
    if (!input.ok()) return FailUsage(context.terminal, input.status().message());
    const int64_t tokens = CountTokens(*input, model.tokenizer());
    if (tokens > model.limits().prompt_tokens()) return FailTooLong(name, tokens, model, context.terminal);

    v1::ScoreTextRequest request;
    *request.mutable_model() = context.model;
    *request.add_inputs() = *std::move(input);
    request.set_token_log_probabilities(log_probabilities_);
    request.set_top_alternatives(top_alternatives_);
    const absl::StatusOr<v1::ScoreTextResponse> response = [&] {
      const Progress progress(context.terminal, absl::StrCat("scoring ", name, ", ", tokens, " tokens"));
      return context.client.ScoreText(request);
    }();
    if (!response.ok()) return FailCall(context, response.status());
    Print(name, *response, context);
    return ExitCode::kOk;
  }

  static ExitCode FailTooLong(const std::string& name, int64_t tokens, const v1::Model& model, Terminal& terminal) {
    const int64_t limit = model.limits().prompt_tokens();
    terminal.error << absl::StrFormat(
        "longshort: %s has %d tokens; the server takes at most %d in one document.\n"
        "Start the server with --max-prompt-tokens=%d to score it with the memory carried on, or cut it:\n"
        "\"split --line-bytes=%d FILE\" makes parts that are each scored from an empty memory.\n",
        name, tokens, limit, tokens, limit);
    return ExitCode::kRefused;
  }

  static void Print(const std::string& name, const v1::ScoreTextResponse& response, const CommandContext& context) {
    std::ostream& output = context.terminal.output;
    if (context.options.json) {
      WriteJsonLine(response, output);
      return;
    }
    for (const v1::TextScore& score : response.scores()) {
      output << ScoreLine(score, name);
      for (const v1::TokenLogProbability& token : score.tokens()) output << TokenLine(token);
    }
    output << std::flush;
  }

  bool log_probabilities_ = false;
  int32_t top_alternatives_ = 0;
  bool ids_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeScoreCommand() { return std::make_unique<ScoreCommand>(); }

}  // namespace longshort

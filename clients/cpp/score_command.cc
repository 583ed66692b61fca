// `longshort score`: the likelihood of documents under a language model.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/item_run.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

constexpr char kHeader[] = "    tokens     scored  log-likelihood  bits/byte  bits/char   tokens/s  document\n";

std::string Bits(bool present, double bits) { return present ? absl::StrFormat("%.4f", bits) : "-"; }

// Writes a row, then a line for each token if requested.
void WriteRow(const std::string& name, const v1::TextScore& score, std::ostream& output) {
  const double seconds = score.timings().prefill_seconds();
  const std::string rate =
      seconds > 0 ? absl::StrFormat("%.0f", static_cast<double>(score.token_count()) / seconds) : "-";
  output << absl::StrFormat("%10d %10d %15.4f %10s %10s %10s  %s\n", score.token_count(), score.scored_token_count(),
                            score.log_likelihood(), Bits(score.has_bits_per_byte(), score.bits_per_byte()),
                            Bits(score.has_bits_per_character(), score.bits_per_character()), rate, name);
  for (const v1::TokenLogProbability& token : score.tokens()) output << TokenLine(token);
  output << std::flush;
}

// Writes a ScoreTextResponse.
void WriteJson(const std::string& name, v1::ScoreTextsResponse answer, const v1::Model& model, std::ostream& output) {
  answer.mutable_score()->clear_timings();
  v1::ScoreTextResponse response;
  response.mutable_usage()->set_prompt_tokens(answer.score().token_count());
  *response.mutable_model() = std::move(*answer.mutable_model());
  *response.add_scores() = std::move(*answer.mutable_score());
  WriteAnswerJsonLine(name, model, nullptr, response, output);
}

class ScoreCommand final : public Command {
 public:
  ScoreCommand()
      : Command("score", "Score texts: compute their likelihood under a language model",
                R"(Usage: longshort score [options] [FILE|FOLDER|PATTERN|-]...

Scores each file (or standard input) as one document, including its final newline, with a language model. For classifiers, use
"longshort classify". Folders are searched recursively, without hidden files, which a final line counts; patterns must be
quoted ('reviews/*.txt'). With --lines, each line is a document, named FILE:LINE. The program sends the documents over one
stream and prints the results in order. If a document cannot be scored, the program reports it by name and continues with the
others.

The output has one row for each document:
  tokens, scored     number of tokens, and of those that were scored: all except the first, which has no context
  log-likelihood     sum of the natural logarithms of the scored tokens' probabilities (nats)
  bits/byte          -log2 likelihood per scored byte; bits/char per character, for character vocabularies
  tokens/s           speed at which the server read the document
With --json, the output has one line for each document: {"name": ..., "fingerprint": ..., "precision": ..., ...} with the
fields of ScoreTextResponse; fingerprint and precision are the model's. Empty lists are omitted. For a document that failed,
the line is {"name": ..., "error": {...}}.

The exit code is 0 only if every document was scored; --help=all lists the others. If the server is stopping or full, the call
is repeated up to four times. If a run ends early, the program prints how many documents were answered.
For a large corpus, or JSON lines, use longshort-batch (pip install './clients/python[batch]'): it uses several servers, and
resumes after a restart without scoring a document twice.

Examples:
  longshort score book.txt chapter-*.txt
  printf 'The cat sat.' | longshort score --log-probabilities --top-alternatives=3
  longshort score --json book.txt | jq '.scores[0].bits_per_byte'
  longshort score --json --lines sentences.txt > scores.jsonl
)") {}

  void AddOptions(OptionTable& table) override {
    options_.AddTo(table);
    table.AddSwitch("log-probabilities", "Print each token's log-probability, id and bytes.", &log_probabilities_);
    table.Add("top-alternatives", "N",
              "With --log-probabilities, also the N most probable tokens at each position, 0 to 20.",
              &top_alternatives_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a classifier; use \"longshort classify\""));
    }
    v1::ScoreTextsOptions request;
    request.set_token_log_probabilities(log_probabilities_);
    request.set_top_alternatives(top_alternatives_);
    LS_ASSIGN_OR_RETURN(CollectedFiles files, CollectItems(options_, arguments, model, /*embeds=*/false, context));
    std::ostream& output = context.terminal.output;
    const bool as_json = context.options.json;
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      if (!as_json) return WriteRow(name, answer.score(), output);
      WriteJson(name, answer, model, output);
    };
    if (!as_json) output << kHeader << std::flush;
    return RunItems(options_, std::move(files), model, std::move(request), {.json_errors = as_json, .show = show},
                    context);
  }

 private:
  ItemOptions options_;
  bool log_probabilities_ = false;
  int32_t top_alternatives_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeScoreCommand() { return std::make_unique<ScoreCommand>(); }

}  // namespace longshort::client

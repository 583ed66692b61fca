// `longshort score`: the likelihood of documents under a language model.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/text_run.h"

namespace longshort::client {
namespace {

class ScoreCommand final : public Command {
 public:
  ScoreCommand()
      : Command("score", "Score texts: compute their likelihood under a language model",
                R"(Usage: longshort score [options] [FILE|FOLDER|PATTERN|-]...

Scores each file (or standard input) as one document, including its final newline, with a language model. For classifiers, use
"longshort classify". Folders are searched recursively, without hidden files, which a final line counts; patterns must be
quoted ('reviews/*.txt'). With --lines, each line is a document, named FILE:LINE. With --json-lines, each line is an object
{"text": ..., "name": ...}; "name" is optional, other fields are ignored. The program sends the documents over one stream and
prints the results in order. If a document cannot be scored, the program reports it by name and continues with the others.

The output has one row for each document:
  tokens, scored     number of tokens, and of those that were scored: all except the first, which has no context
  log-likelihood     sum of the natural logarithms of the scored tokens' probabilities (nats)
  bits/byte          -log2 likelihood per scored byte; bits/char per character, for character vocabularies
  tokens/s           speed at which the server read the document
With --json, the output has one line for each document: {"name": ..., "fingerprint": ..., "precision": ..., ...} with the
fields of ScoreTextResponse; fingerprint and precision are the model's. Empty lists are omitted. For a document that failed,
the line is {"name": ..., "error": {...}}.

The exit code is 0 if every document was scored; otherwise 2 if a document is invalid or not allowed (do not send it again
unchanged), 3 if the server refused one because it was full or stopping, 5 for any other error, or 1 if files could not be read.
If the server is stopping or full, the call is repeated up to four times. If a run ends early, the program prints how many
documents were answered.
For a large corpus, use longshort-batch (pip install './clients/python[batch]'): it uses several servers, and resumes after a
restart without scoring a document twice.

Examples:
  longshort score book.txt chapter-*.txt
  printf 'The cat sat.' | longshort score --log-probabilities --top-alternatives=3
  longshort score --json book.txt | jq '.scores[0].bits_per_byte'
  longshort score --json --json-lines documents.jsonl > scores.jsonl
)") {}

  void AddOptions(OptionTable& table) override {
    options_.AddTo(table);
    table.AddSwitch("log-probabilities", "Print each token's log-probability, id and bytes.", &log_probabilities_);
    table.Add("top-alternatives", "N",
              "With --log-probabilities, also the N most probable tokens at each position, 0 to 20.",
              &top_alternatives_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_RETURN_IF_ERROR(options_.Check());
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a classifier; use \"longshort classify\""));
    }
    v1::ScoreTextsOptions request;
    request.set_token_log_probabilities(log_probabilities_);
    request.set_top_alternatives(top_alternatives_);
    LS_ASSIGN_OR_RETURN(TextFiles files, CollectTexts(options_, arguments, model, /*embeds=*/false));
    return RunTexts(options_, model, std::move(request), std::move(files), context);
  }

 private:
  TextRunOptions options_;
  bool log_probabilities_ = false;
  int32_t top_alternatives_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeScoreCommand() { return std::make_unique<ScoreCommand>(); }

}  // namespace longshort::client

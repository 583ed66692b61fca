// `longshort score`: how likely a language model finds documents.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/text_run.h"

namespace longshort::client {
namespace {

class ScoreCommand final : public Command {
 public:
  ScoreCommand()
      : Command("score", "Score texts: how likely a language model finds them",
                R"(Usage: longshort score [options] [FILE|FOLDER|PATTERN|-]...

Scores each file (or standard input) as one document, with all its bytes, by a language model. "longshort classify" asks
classifiers. A folder stands for all files in it and in its folders, a pattern in quotes ('reviews/*.txt') for what it matches.
With --lines each line is a document, named FILE:LINE; with --json-lines an object {"text": ..., "name": ...} (the name may be
left out, other fields are ignored). The documents go over one stream, and results come in their order. One that cannot be scored
is shown beside its name, and the others go on.

A row a document, however long it is:
  tokens, scored     tokens in it, and how many were scored: all but the first, which nothing comes before
  log-likelihood     sum of the natural logarithms of the scored tokens' probabilities (nats)
  bits/byte          -log2 likelihood per scored byte; bits/char per character, for character vocabularies
  tokens/s           how fast the server read it
With --json, a line a document: {"name": ..., "fingerprint": ..., "precision": ..., ...}, these two of the model, with the fields
of ScoreTextResponse; lists without elements are left out. A document that failed: {"name": ..., "error": {...}}.

The exit code is 0 if every document was scored; otherwise 2 if one was refused, 3 if all that failed found the server full, 1 if
none could be read. A call that a stopping or full server did not take is tried four times (gRPC's own retries). A run that ended
early says how many documents were answered.
For a whole corpus there is longshort-batch (pip install './clients/python[batch]'): several servers, restarts, every document
once.

Examples:
  longshort score book.txt chapter-*.txt
  printf 'The cat sat.' | longshort score --log-probabilities --top-alternatives=3
  longshort score --json book.txt | jq '.scores[0].bits_per_byte'
  longshort score --json --json-lines documents.jsonl > scores.jsonl
)") {}

  void AddOptions(OptionTable& table) override {
    options_.AddTo(table);
    table.AddSwitch("log-probabilities", "Print each token's log-probability, id and bytes.", &log_probabilities_);
    table.Add("top-alternatives", "N", "With it, the N likeliest tokens at each place; 0 to 20.", &top_alternatives_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_RETURN_IF_ERROR(options_.Check());
    LS_ASSIGN_OR_RETURN(std::vector<std::string> names, AsUsage(CollectFiles(DocumentNames(arguments), AnyFile)));
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a classifier; use \"longshort classify\""));
    }
    v1::ScoreTextsOptions request;
    request.set_token_log_probabilities(log_probabilities_);
    request.set_top_alternatives(top_alternatives_);
    return RunTexts(options_, model, std::move(request), std::move(names), {}, context);
  }

 private:
  TextRunOptions options_;
  bool log_probabilities_ = false;
  int32_t top_alternatives_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeScoreCommand() { return std::make_unique<ScoreCommand>(); }

}  // namespace longshort::client

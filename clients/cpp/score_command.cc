// `longshort score`: how likely a language model finds documents, or which classes a classifier gives them.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/answer_file.h"
#include "clients/cpp/bulk_scoring.h"
#include "clients/cpp/command.h"
#include "clients/cpp/document_limits.h"
#include "clients/cpp/document_source.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/item_failures.h"
#include "clients/cpp/progress.h"
#include "clients/cpp/score_printer.h"
#include "clients/cpp/score_run.h"

namespace longshort {
namespace {

bool AnyFile(const std::string& /*name*/) { return true; }

// The answer to the one document of a call, as a stream would give it.
absl::StatusOr<v1::ScoreTextsResponse> OnlyAnswer(v1::ScoreTextResponse response) {
  v1::ScoreTextsResponse answer;
  *answer.mutable_model() = response.model();
  if (response.scores_size() == 1) {
    *answer.mutable_score() = std::move(*response.mutable_scores(0));
  } else if (response.classifications_size() == 1) {
    *answer.mutable_classification() = std::move(*response.mutable_classifications(0));
  } else {
    return absl::InternalError("the server did not answer one document with one result");
  }
  return answer;
}

class ScoreCommand final : public Command {
 public:
  absl::string_view name() const override { return "score"; }
  absl::string_view summary() const override { return "Score texts: log-likelihood, or the likeliest classes"; }
  absl::string_view description() const override {
    return R"(Usage: longshort score [options] [FILE|FOLDER|PATTERN|-]...

Scores each file (or standard input) as one document, with all its bytes. A folder stands for all files in it and in its folders,
a pattern in quotes ('reviews/*.txt') for what it matches. With --lines each line is a document, named FILE:LINE; with
--json-lines an object {"text": ..., "name": ...} (the name may be left out, other fields are passed over).
Results come in the order of the documents. One that cannot be scored is told beside its name, and the others go on.

Language models: a row a document, however long it is, with
  tokens, scored     tokens in it, and how many were scored: all but the first, which nothing comes before
  log-likelihood     sum of the natural logarithms of the scored tokens' probabilities (nats)
  bits/byte          -log2 likelihood per scored byte; bits/char per character, for character vocabularies
  tokens/s           how fast the server read it
Classifiers: a table a document, the likeliest classes with their probabilities. For models that compare two documents, --second
names the second one, once for each file; --lines have a tab between the two, --json-lines the field "second_text".
With --json, a line a document: {"name": ..., "fingerprint": ..., "precision": ..., ...}, these two of the model, with the fields
of ScoreTextResponse, or of TextClassification and "model"; lists without elements are left out. A document that failed:
{"name": ..., "error": {...}}.

Many documents, for as long as it takes:
  longshort score --server=a:8500 --server=b:8500 --retry --json-lines --resume=scores.jsonl documents.jsonl
The same command goes on where it ended, whatever ended it (kill -9, Ctrl-C, a full disk): scores.jsonl has a line for each of the
first documents, and the others follow. A file of other documents, or of another model (name, version, fingerprint, precision), is
refused and left as it is.
The exit code tells of all documents in the file, also those of earlier runs: 0 if all were scored; otherwise 2 if one was
refused, 3 if all that failed found the server full, 1 if none could be read. If the run ended early, --retry or not, it is that
of what ended it, and the last words tell how to go on.

Examples:
  longshort score book.txt chapter-*.txt
  printf 'The cat sat.' | longshort score --log-probabilities --top-alternatives=3
  longshort score --json book.txt | jq '.scores[0].bits_per_byte'
  longshort score --model=reviews --truncate --top-k=1 reviews/
  longshort score --model=citations --second cited.txt citing.txt
)";
  }
  void AddOptions(OptionTable& table) override {
    table.AddSwitch("lines", "Each line is a document (two with a tab between, for models of two).", &lines_);
    table.AddSwitch("json-lines", "Each line is a JSON object with the document in its field \"text\".", &json_lines_);
    table.Add("second", "FILE", "Classifiers of two documents: the second one; once for each file.", &second_);
    table.AddSwitch("ids", "Documents list token ids instead of text.", &ids_);
    table.AddSwitch("truncate", "Classifiers: of a longer document, read the first tokens.", &truncate_);
    table.Add("top-k", "N", "Classifiers: how many of the likeliest classes to show; unset, 5.", &top_k_);
    table.AddSwitch("logits", "Classifiers: show the logits of all classes too.", &logits_);
    table.AddSwitch("log-probabilities", "Language models: print each token's log-probability, id and bytes.",
                    &log_probabilities_);
    table.Add("top-alternatives", "N", "With it, the N likeliest tokens at each place; 0 to 20.", &top_alternatives_);
    table.AddSwitch("timings", "With --json, show where each document's time went.", &timings_);
    table.BeginSection("Options for many documents:");
    table.Add("resume", "FILE", "Write JSON lines to FILE, behind those that it has; it need not be there.", &resume_);
    table.AddSwitch("retry", "Wait for servers that are full, stopping or not there, and ask again, until all is done.",
                    &retry_);
    table.AddSwitch("quiet", "Tell neither progress nor news of servers.", &quiet_);
  }
  bool takes_several_servers() const override { return true; }

  ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (lines_ && json_lines_) return FailUsage(context.terminal, "give --lines or --json-lines, not both");
    absl::StatusOr<std::vector<std::string>> names = CollectFiles(DocumentNames(arguments), AnyFile);
    if (!names.ok()) return FailUsage(context.terminal, names.status().message());
    absl::StatusOr<std::vector<std::string>> second_names = CollectFiles(second_, AnyFile);
    if (!second_names.ok()) return FailUsage(context.terminal, second_names.status().message());
    std::unique_ptr<AnswerFile> file;
    if (resume_.has_value()) {
      absl::StatusOr<std::unique_ptr<AnswerFile>> opened = OpenAnswers(*resume_, *names);
      if (!opened.ok()) return FailUsage(context.terminal, absl::StrCat("--resume: ", opened.status().message()));
      file = *std::move(opened);
    }

    const absl::StatusOr<v1::Model> model =
        DescribeModel(context.servers, context.model, retry_,
                      [&](const std::string& news) { TellNews(context.terminal, quiet_, news); });
    if (!model.ok()) return FailCall(context, model.status());
    const absl::Status suits = CheckModel(*model);
    if (!suits.ok()) return FailCall(context, suits);
    const absl::Status options = CheckOptions(*model, names->size(), second_names->size());
    if (!options.ok()) return FailUsage(context.terminal, options.message());

    const bool by_lines = lines_ || json_lines_;
    const bool is_one = !by_lines && names->size() == 1;
    const std::unique_ptr<DocumentSource> source =
        by_lines
            ? MakeLineSource(*std::move(names), json_lines_ ? LineForm::kJson : LineForm::kText,
                             std::max<int64_t>(model->classifier().documents(), 1), ids_, !quiet_, context.terminal)
            : MakeFileSource(*std::move(names), *std::move(second_names), ids_, context.terminal);
    if (is_one && file == nullptr && !retry_ && context.servers.size() == 1) return ScoreOne(*source, *model, context);
    return ScoreMany(*source, *model, file.get(), context);
  }

 private:
  // Errors: those of AnswerFile; INVALID_ARGUMENT if it is also a document.
  static absl::StatusOr<std::unique_ptr<AnswerFile>> OpenAnswers(const std::string& path,
                                                                 const std::vector<std::string>& documents) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<AnswerFile> file, AnswerFile::Open(path));
    for (const std::string& document : documents) {
      if (!file->IsSameFile(document)) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, " is one of the documents, too"));
    }
    return file;
  }

  static absl::Status CheckModel(const v1::Model& model) {
    if (!model.has_classifier() || model.classifier().input() == v1::CLASSIFIER_INPUT_TEXT) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the model ", model.name(), " (", model.architecture(),
                                                      ") takes images; \"longshort classify\" works with it"));
  }

  // Whether the options suit the model and each other. Errors: INVALID_ARGUMENT.
  absl::Status CheckOptions(const v1::Model& model, size_t names, size_t second_names) const {
    if (!model.has_classifier()) {
      if (truncate_ || top_k_.has_value() || logits_ || !second_.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--truncate, --top-k, --logits and --second are for classifiers; ", model.name(), " is a language model"));
      }
      return absl::OkStatus();
    }
    if (log_probabilities_ || top_alternatives_ != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--log-probabilities and --top-alternatives are for language models; ", model.name(), " is a classifier"));
    }
    if (top_k_.has_value() && *top_k_ < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--top-k is ", *top_k_, "; it must be at least 1"));
    }
    const bool by_lines = lines_ || json_lines_;
    if (second_names > 0 && (by_lines || model.classifier().documents() != 2)) {
      return absl::InvalidArgumentError(
          by_lines ? std::string("lines hold both documents: give --second without them")
                   : absl::StrCat("--second: the model ", model.name(), " takes one document"));
    }
    if (model.classifier().documents() == 2 && !by_lines && second_names != names) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the model ", model.name(), " takes two documents: ", second_names, " second ones (--second) were given for ",
          names, " first ones. Pairs may also be lines: --lines, with a tab between, or --json-lines"));
    }
    return absl::OkStatus();
  }

  v1::ScoreTextsOptions MakeOptions(const v1::Model& model) const {
    v1::ScoreTextsOptions options;
    // The version that GetModel described, whatever is loaded meanwhile.
    options.mutable_model()->set_name(model.name());
    options.mutable_model()->set_version(model.version());
    options.set_token_log_probabilities(log_probabilities_);
    options.set_top_alternatives(top_alternatives_);
    options.set_truncate(truncate_);
    options.set_top_k(top_k_.value_or(0));
    options.set_all_logits(logits_);
    return options;
  }

  v1::ScoreTextRequest MakeRequest(const v1::Model& model, DocumentInputs inputs) const {
    const v1::ScoreTextsOptions options = MakeOptions(model);
    v1::ScoreTextRequest request;
    *request.mutable_model() = options.model();
    *request.add_inputs() = std::move(inputs.first);
    if (inputs.second.has_value()) *request.add_second_inputs() = *std::move(inputs.second);
    request.set_token_log_probabilities(options.token_log_probabilities());
    request.set_top_alternatives(options.top_alternatives());
    request.set_truncate(options.truncate());
    request.set_top_k(options.top_k());
    request.set_all_logits(options.all_logits());
    return request;
  }

  // In one call: what is wrong with it is the program's error.
  ExitCode ScoreOne(DocumentSource& source, const v1::Model& model, const CommandContext& context) const {
    NamedDocument document = *source.Next();
    if (!document.inputs.ok()) {
      if (context.options.json) return WriteFailure(document.name, document.inputs.status(), model, context);
      return FailUsage(context.terminal, document.inputs.status().message());
    }
    const absl::Status fits = FitDocument(model, truncate_, *document.inputs);
    if (!fits.ok()) {
      if (context.options.json) return WriteFailure(document.name, fits, model, context);
      context.terminal.error << "longshort: " << document.name << ": " << fits.message() << "\n";
      return ExitCodeOf(fits);
    }
    std::string what = absl::StrCat("scoring ", document.name);
    if (!model.has_classifier()) {
      absl::StrAppend(&what, ", ", CountTokens(document.inputs->first, model.tokenizer()), " tokens");
    }
    const v1::ScoreTextRequest request = MakeRequest(model, *std::move(document.inputs));
    absl::StatusOr<v1::ScoreTextResponse> response = [&] {
      std::optional<Progress> progress;
      if (!quiet_) progress.emplace(context.terminal, what);
      return context.client.ScoreText(request);
    }();
    if (context.options.json && ExitCodeOf(response.status()) == ExitCode::kRefused) {
      return WriteFailure(document.name, response.status(), model, context);
    }
    if (!response.ok()) return FailCall(context, response.status());
    const absl::StatusOr<v1::ScoreTextsResponse> answer = OnlyAnswer(*std::move(response));
    if (!answer.ok()) return FailCall(context, answer.status());
    ScorePrinter(context.terminal, FormFor(model, context.options.json)).Print(document.name, *answer);
    return ExitCode::kOk;
  }

  // As of one of many.
  ExitCode WriteFailure(const std::string& name, const absl::Status& status, const v1::Model& model,
                        const CommandContext& context) const {
    v1::ScoreTextsResponse answer;
    *answer.mutable_error() = MakeItemError(status);
    ScorePrinter printer(context.terminal, FormFor(model, context.options.json));
    printer.Print(name, answer);
    return printer.failures().Summarize(1);
  }

  ExitCode ScoreMany(DocumentSource& source, const v1::Model& model, AnswerFile* file,
                     const CommandContext& context) const {
    ScoreRun run;
    run.bulk.texts = MakeOptions(model);
    run.bulk.retry = retry_;
    run.bulk.limits.message_bytes = model.limits().message_bytes();
    run.form = FormFor(model, context.options.json || file != nullptr);
    run.quiet = quiet_;
    run.file = file;
    return ScoreDocuments(
        run, model, source, [&](DocumentInputs& inputs) { return FitDocument(model, truncate_, inputs); }, context);
  }

  ScoreForm FormFor(const v1::Model& model, bool json) const {
    return {.json = json,
            .timings = timings_,
            .language_model = !model.has_classifier(),
            .weights = {.fingerprint = model.fingerprint(), .precision = model.precision()}};
  }

  bool lines_ = false;
  bool json_lines_ = false;
  std::vector<std::string> second_;
  bool ids_ = false;
  bool truncate_ = false;
  std::optional<int32_t> top_k_;
  bool logits_ = false;
  bool log_probabilities_ = false;
  int32_t top_alternatives_ = 0;
  bool timings_ = false;
  std::optional<std::string> resume_;
  bool retry_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeScoreCommand() { return std::make_unique<ScoreCommand>(); }

}  // namespace longshort

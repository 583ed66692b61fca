#include "clients/cpp/text_run.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

// Interval between progress lines without a terminal: keeps the log of a long run short.
constexpr absl::Duration kBetweenProgressLines = absl::Seconds(30);

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

// "reviews/7.txt  (1000 tokens, truncated)"
std::string ClassHeading(const std::string& name, const v1::TextClassification& classification) {
  std::vector<std::string> readings;
  for (const v1::DocumentReading& document : classification.documents()) {
    readings.push_back(absl::StrCat(document.token_count(), " tokens", document.truncated() ? ", truncated" : ""));
  }
  return absl::StrCat(name, "  (", absl::StrJoin(readings, "; "), ")");
}

// Used by two threads: the caller's, and the stream's thread that reads documents.
class TextRun final {
 public:
  TextRun(const TextRunOptions& options, const v1::Model& model, v1::ScoreTextsOptions request, DocumentSource& source,
          const CommandContext& context)
      : options_(options),
        model_(model),
        request_(std::move(request)),
        source_(source),
        context_(context),
        as_json_(context.options.json || (request_.has_embedding() && options.npy == nullptr)),
        failures_(context.terminal, as_json_, "documents") {}

  absl::StatusOr<ExitCode> Run() {
    if (!context_.options.json && !model_.has_classifier()) context_.terminal.output << kHeader << std::flush;
    absl::Status status = [&] {
      ProgressBar progress(context_.terminal, {.unit = "documents",
                                               .total = source_.total(),
                                               .line_interval = kBetweenProgressLines,
                                               .quiet = options_.quiet});
      return context_.client.ScoreTexts(
          request_, std::max(model_.limits().window(), 1),
          [&](v1::ScoreTextsRequest& next) { return ReadNext(next, progress); },
          [&](const v1::ScoreTextsResponse& answer) { Take(answer, progress); }, [&] { StopReading(); });
    }();
    const MutexLock lock(mutex_);
    const int64_t unanswered = static_cast<int64_t>(read_.size());
    const bool is_done = all_read_ && unanswered == 0;
    if (status.ok() && !is_done) {
      status = absl::InternalError(absl::StrCat("the server did not answer ", unanswered, " documents"));
    }
    const ExitCode code = failures_.Summarize(shown_);
    // The stream's status after the last answer does not matter.
    if (is_done) return code;
    if (shown_ > 0)
      context_.terminal.error << "longshort: " << shown_ << " documents were answered before the run ended:\n";
    return status;
  }

 private:
  // A document that was read but not yet shown.
  struct ReadDocument {
    std::string name;
    absl::Status error;  // if not OK, the document is not sent
  };

  // Reads the next document that can be sent. Returns false at the end.
  bool ReadNext(v1::ScoreTextsRequest& request, ProgressBar& progress) {
    while (std::optional<NamedDocument> document = source_.Next()) {
      absl::Status status = document->item.ok() ? Fit(*document->item) : document->item.status();
      if (status.ok()) request = *std::move(document->item);
      const MutexLock lock(mutex_);
      read_.push_back({std::move(document->name), std::move(status)});
      if (read_.back().error.ok()) return true;
      ShowUnsent(progress);
      if (!context_.terminal.output) return false;
    }
    const MutexLock lock(mutex_);
    all_read_ = !stopped_;
    return false;
  }

  void StopReading() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
    }
    context_.terminal.stop_input();
  }

  // Errors: the reason why the document cannot be sent.
  absl::Status Fit(v1::ScoreTextsRequest& item) const {
    LS_RETURN_IF_ERROR(FitDocument(model_, request_.truncate(), item));
    const auto bytes = static_cast<int64_t>(item.ByteSizeLong());
    const int64_t limit = model_.limits().message_bytes();  // 0 means none
    if (limit == 0 || bytes <= limit) return absl::OkStatus();
    // Otherwise gRPC would end the whole stream.
    return absl::InvalidArgumentError(absl::StrCat("the document needs a message of ", bytes,
                                                   " bytes; the server accepts at most ", limit,
                                                   " (--max-message-bytes)"));
  }

  void Take(const v1::ScoreTextsResponse& answer, ProgressBar& progress) {
    const MutexLock lock(mutex_);
    // Unsent documents before this one were already shown.
    if (read_.empty()) return;
    Show(read_.front().name, answer, progress);
    read_.pop_front();
    ShowUnsent(progress);
    if (!context_.terminal.output) context_.client.Cancel();
  }

  // Shows the first documents that were not sent.
  void ShowUnsent(ProgressBar& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (; !read_.empty() && !read_.front().error.ok(); read_.pop_front()) {
      v1::ScoreTextsResponse answer;
      *answer.mutable_error() = MakeItemError(read_.front().error);
      Show(read_.front().name, answer, progress);
    }
  }

  void Show(const std::string& name, const v1::ScoreTextsResponse& answer, ProgressBar& progress)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    progress.Hide();
    Terminal& terminal = context_.terminal;
    if (answer.has_error()) {
      failures_.Add(name, answer.error());
      if (options_.npy != nullptr) options_.npy->AddNothing();
    } else if (options_.npy != nullptr) {
      options_.npy->Add(answer.embedding().values());
    } else if (as_json_) {
      WriteJson(name, answer);
    } else if (answer.has_classification()) {
      WriteClassTable(ClassHeading(name, answer.classification()), answer.classification().classification(), terminal);
    } else {
      terminal.output << ScoreLine(answer.score(), name);
      for (const v1::TokenLogProbability& token : answer.score().tokens()) terminal.output << TokenLine(token);
      terminal.output << std::flush;
    }
    if (terminal.output) ++shown_;
    progress.Advance();
  }

  void WriteJson(const std::string& name, v1::ScoreTextsResponse answer) const {
    if (answer.has_embedding()) {
      if (!options_.timings) answer.mutable_embedding()->clear_timings();
      WriteAnswerJsonLine(name, model_, &answer.model(), answer.embedding(), context_.terminal.output);
      return;
    }
    if (answer.has_classification()) {
      if (!options_.timings) answer.mutable_classification()->mutable_classification()->clear_timings();
      WriteAnswerJsonLine(name, model_, &answer.model(), answer.classification(), context_.terminal.output);
      return;
    }
    if (!options_.timings) answer.mutable_score()->clear_timings();
    v1::ScoreTextResponse response;  // the form of ScoreText
    response.mutable_usage()->set_prompt_tokens(answer.score().token_count());
    *response.mutable_model() = answer.model();
    *response.add_scores() = std::move(*answer.mutable_score());
    WriteAnswerJsonLine(name, model_, nullptr, response, context_.terminal.output);
  }

  const TextRunOptions& options_;
  const v1::Model& model_;
  const v1::ScoreTextsOptions request_;
  DocumentSource& source_;
  const CommandContext& context_;
  const bool as_json_;

  Mutex mutex_;
  ItemFailures failures_ ABSL_GUARDED_BY(mutex_);
  std::deque<ReadDocument> read_ ABSL_GUARDED_BY(mutex_);  // the front document, if any, was sent
  bool all_read_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t shown_ ABSL_GUARDED_BY(mutex_) = 0;
};

Documents DocumentsOf(const v1::Model& model, bool embeds) {
  const bool compares = model.classifier().documents() == 2;
  if (compares) return embeds ? Documents{1, 1} : Documents{2, 2};
  return {1, model.classifier().max_documents() == 2 ? 2 : 1};
}

// Errors: UsageError if --second suits neither the other options nor the model.
absl::Status CheckSecond(const TextRunOptions& options, const v1::Model& model, const Documents& documents) {
  if (options.second.empty()) return absl::OkStatus();
  if (options.by_lines()) {
    return UsageError("--second cannot be used with --lines or --json-lines: each line holds both documents");
  }
  if (documents.most == 2) return absl::OkStatus();
  return UsageError(absl::StrCat("--second: the model ", model.name(),
                                 model.classifier().documents() == 2 ? " compares two documents, and embeds each by "
                                                                       "itself: give the files as arguments"
                                                                     : " takes one document"));
}

}  // namespace

void TextRunOptions::AddTo(OptionTable& table) {
  table.AddSwitch("lines", "Each line is a document (or two, separated by a tab, for models that compare two).",
                  &lines);
  table.AddSwitch("json-lines", "Each line is a JSON object with the document in its field \"text\".", &json_lines);
  table.AddSwitch("ids", "Documents are lists of token ids instead of text.", &ids);
  table.AddSwitch("timings", "With --json, include each document's timings.", &timings);
  table.AddSwitch("quiet", "Show no progress.", &quiet);
}

void TextRunOptions::AddSecondTo(OptionTable& table) {
  table.Add("second", "FILE", "Second document, for models that compare or join two; once for each file.", &second);
}

absl::Status TextRunOptions::Check() const {
  return lines && json_lines ? UsageError("give --lines or --json-lines, not both") : absl::OkStatus();
}

absl::StatusOr<TextFiles> CollectTexts(const TextRunOptions& options, const std::vector<std::string>& arguments,
                                       const v1::Model& model, bool embeds) {
  TextFiles files;
  files.documents = DocumentsOf(model, embeds);
  LS_RETURN_IF_ERROR(CheckSecond(options, model, files.documents));
  LS_ASSIGN_OR_RETURN(CollectedFiles first, AsUsage(CollectFiles(DocumentNames(arguments), AnyFile)));
  LS_ASSIGN_OR_RETURN(CollectedFiles second, AsUsage(CollectFiles(options.second, AnyFile)));
  const bool are_pairs = !second.names.empty() || (files.documents.least == 2 && !options.by_lines());
  if (are_pairs && second.names.size() != first.names.size()) {
    return UsageError(absl::StrCat("the model ", model.name(), files.documents.least == 2 ? " compares" : " joins",
                                   " two documents, but ", first.names.size(), " files and ", second.names.size(),
                                   " --second files were given. Give one --second for each file, or pairs as lines ",
                                   files.documents.least == 2 ? "with --lines or --json-lines" : "with --json-lines"));
  }
  files.names = std::move(first.names);
  files.second_names = std::move(second.names);
  files.left_out = std::move(first.left_out);
  for (const auto& [label, count] : second.left_out) files.left_out[label] += count;
  return files;
}

absl::StatusOr<ExitCode> RunTexts(const TextRunOptions& options, const v1::Model& model, v1::ScoreTextsOptions request,
                                  TextFiles files, const CommandContext& context) {
  // Pins the version that GetModel described, even if a newer one is loaded meanwhile.
  request.mutable_model()->set_name(model.name());
  request.mutable_model()->set_version(model.version());
  DocumentSource source(
      std::move(files.names), std::move(files.second_names),
      {.form = options.form(), .documents = files.documents, .as_ids = options.ids, .counts = !options.quiet},
      context.terminal);
  absl::StatusOr<ExitCode> code = TextRun(options, model, std::move(request), source, context).Run();
  ReportLeftOut(files.left_out, context.terminal);
  return code;
}

}  // namespace longshort::client

#include "clients/cpp/text_run.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/results.h"
#include "google/protobuf/repeated_field.h"

namespace longshort::client {
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

// "reviews/7.txt  (1000 tokens, truncated)"
std::string ClassHeading(const std::string& name, const v1::TextClassification& classification) {
  std::vector<std::string> readings;
  for (const v1::DocumentReading& document : classification.documents()) {
    readings.push_back(absl::StrCat(document.token_count(), " tokens", document.truncated() ? ", truncated" : ""));
  }
  return absl::StrCat(name, "  (", absl::StrJoin(readings, "; "), ")");
}

// Cuts the ids to at most `bytes` of a message. The last one stays: some models keep it.
void CutIds(int64_t bytes, google::protobuf::RepeatedField<int32_t>& ids) {
  constexpr int64_t kMaxIdBytes = 5;
  const int kept = static_cast<int>(std::max<int64_t>(bytes / kMaxIdBytes, 1));
  if (ids.size() <= kept) return;
  ids.Set(kept - 1, ids.Get(ids.size() - 1));
  ids.Truncate(kept);
}

// Cuts the document to what a message may hold if the server truncates it anyway. Errors: INVALID_ARGUMENT if the
// document needs a larger message: gRPC would end the whole stream.
absl::Status FitMessage(int64_t limit, bool truncate, v1::ScoreTextsRequest& item) {
  if (limit == 0) return absl::OkStatus();  // none
  const auto size = [&] { return static_cast<int64_t>(item.ByteSizeLong()); };
  if (truncate && size() > limit) {
    constexpr int64_t kOtherFields = 1024;
    const int64_t kept = std::max<int64_t>(limit - kOtherFields, 0) / (item.has_second_input() ? 2 : 1);
    const auto cut = [kept](v1::Input& input) {
      if (input.has_ids()) return CutIds(kept, *input.mutable_ids()->mutable_ids());
      if (static_cast<int64_t>(input.raw().size()) > kept) input.mutable_raw()->resize(static_cast<size_t>(kept));
    };
    cut(*item.mutable_input());
    if (item.has_second_input()) cut(*item.mutable_second_input());
  }
  if (size() <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the document needs a message of ", size(),
                                                 " bytes; the server accepts at most ", limit,
                                                 " (--max-message-bytes)"));
}

void WriteText(const std::string& name, const v1::ScoreTextsResponse& answer, Terminal& terminal) {
  if (answer.has_classification()) {
    const v1::TextClassification& classification = answer.classification();
    return WriteClassTable(ClassHeading(name, classification), classification.classification(), terminal);
  }
  terminal.output << ScoreLine(answer.score(), name);
  for (const v1::TokenLogProbability& token : answer.score().tokens()) terminal.output << TokenLine(token);
  terminal.output << std::flush;
}

void WriteJson(const std::string& name, v1::ScoreTextsResponse answer, const v1::Model& model, bool timings,
               std::ostream& output) {
  if (answer.has_classification()) {
    if (!timings) answer.mutable_classification()->mutable_classification()->clear_timings();
    WriteAnswerJsonLine(name, model, &answer.model(), answer.classification(), output);
  } else {
    if (!timings) answer.mutable_score()->clear_timings();
    v1::ScoreTextResponse response;  // the form of ScoreText
    response.mutable_usage()->set_prompt_tokens(answer.score().token_count());
    *response.mutable_model() = answer.model();
    *response.add_scores() = std::move(*answer.mutable_score());
    WriteAnswerJsonLine(name, model, nullptr, response, output);
  }
}

// Errors: UsageError if --second suits neither the other options nor the model.
absl::Status CheckSecond(const TextRunOptions& options, const v1::Model& model, int64_t most) {
  if (options.second.empty()) return absl::OkStatus();
  if (options.form.by_lines()) {
    return UsageError("--second cannot be used with --lines or --json-lines: each line holds both documents");
  }
  if (most == 2) return absl::OkStatus();
  return UsageError(absl::StrCat("--second: the model ", model.name(),
                                 model.classifier().documents() == 2 ? " compares two documents, and embeds each by "
                                                                       "itself: give the files as arguments"
                                                                     : " takes one document"));
}

}  // namespace

void TextRunOptions::AddTo(OptionTable& table) {
  table.AddSwitch("lines", "Each line is a document (or two, separated by a tab, for models that compare two).",
                  &form.lines);
  table.AddSwitch("json-lines", "Each line is a JSON object with the document in its field \"text\".",
                  &form.json_lines);
  table.AddSwitch("ids", "Documents are lists of token ids instead of text.", &form.ids);
  table.AddSwitch("timings", "With --json, include each document's timings.", &timings);
  table.AddSwitch("quiet", "Show no progress.", &quiet);
}

void TextRunOptions::AddForClassifiersTo(OptionTable& table) {
  table.BeginSection("Options for texts:");
  AddTo(table);
  table.Add("second", "FILE", "Second document, for models that compare or join two; once for each file.", &second);
  table.AddSwitch("truncate", "Truncate documents to the model's maximum length.", &truncate);
}

absl::Status TextRunOptions::Check() const {
  return form.lines && form.json_lines ? UsageError("give --lines or --json-lines, not both") : absl::OkStatus();
}

absl::StatusOr<TextFiles> CollectTexts(const TextRunOptions& options, const std::vector<std::string>& arguments,
                                       const v1::Model& model, bool embeds) {
  TextFiles files;
  files.form = options.form;
  const bool compares = model.classifier().documents() == 2;
  files.form.least = compares && !embeds ? 2 : 1;
  files.form.most = compares ? files.form.least : std::max<int64_t>(model.classifier().max_documents(), 1);
  LS_RETURN_IF_ERROR(CheckSecond(options, model, files.form.most));
  LS_ASSIGN_OR_RETURN(files.first, AsUsage(CollectFiles(DocumentNames(arguments), AnyFile)));
  LS_ASSIGN_OR_RETURN(files.second, AsUsage(CollectFiles(options.second, AnyFile)));
  const size_t first = files.first.names.size(), second = files.second.names.size();
  if (first == second || (second == 0 && (files.form.least == 1 || files.form.by_lines()))) return files;
  const bool must_be_pairs = files.form.least == 2;
  return UsageError(absl::StrCat("the model ", model.name(), must_be_pairs ? " compares" : " joins",
                                 " two documents, but ", first, " files and ", second,
                                 " --second files were given. Give one --second for each file, or pairs as lines ",
                                 must_be_pairs ? "with --lines or --json-lines" : "with --json-lines"));
}

absl::StatusOr<ExitCode> RunTexts(const TextRunOptions& options, const v1::Model& model, v1::ScoreTextsOptions request,
                                  TextFiles files, const CommandContext& context) {
  Terminal& terminal = context.terminal;
  *request.mutable_model() = SelectorOf(model);
  request.set_truncate(options.truncate);
  const bool as_json = context.options.json || (request.has_embedding() && options.npy == nullptr);
  const auto total = static_cast<int64_t>(files.form.by_lines() ? 0 : files.first.names.size());
  DocumentSource source(std::move(files.first.names), std::move(files.second.names), files.form, terminal);
  const auto next = [&] {
    std::optional<Document> document = source.Next();
    if (document.has_value() && document->item.ok()) {
      const absl::Status fits = FitMessage(model.limits().message_bytes(), options.truncate, *document->item);
      if (!fits.ok()) document->item = fits;
    }
    return document;
  };

  ItemFailures failures(terminal, as_json, "documents");
  int64_t shown = 0;
  if (!context.options.json && !model.has_classifier()) terminal.output << kHeader << std::flush;
  const absl::Status status = [&] {
    ProgressBar progress(terminal, {.unit = "documents", .total = total, .quiet = options.quiet});
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      progress.Hide();
      if (answer.has_error()) failures.Add(name, answer.error());
      if (request.has_embedding()) {
        WriteEmbedding(name, answer, model, options, terminal.output);
      } else if (!answer.has_error() && as_json) {
        WriteJson(name, answer, model, options.timings, terminal.output);
      } else if (!answer.has_error()) {
        WriteText(name, answer, terminal);
      }
      if (terminal.output) ++shown;
      progress.Advance();
      CancelUnlessWritable(context);
    };
    return context.client.ScoreTexts(request, std::max(model.limits().window(), 1), next, show, terminal.stop_input);
  }();
  const ExitCode code = failures.Summarize(shown);
  if (!status.ok() && shown > 0) {
    terminal.error << "longshort: " << shown << " documents were answered before the run ended:\n";
  }
  for (const auto& [label, count] : files.second.left_out) files.first.left_out[label] += count;
  ReportLeftOut(files.first.left_out, terminal);
  LS_RETURN_IF_ERROR(status);
  return code;
}

void WriteEmbedding(const std::string& name, const v1::ScoreTextsResponse& answer, const v1::Model& model,
                    const TextRunOptions& options, std::ostream& output) {
  if (options.npy != nullptr && answer.has_error()) return options.npy->AddNothing();
  if (options.npy != nullptr) return options.npy->Add(answer.embedding().values());
  if (answer.has_error()) return;
  v1::Embedding embedding = answer.embedding();
  if (!options.timings) embedding.clear_timings();
  WriteAnswerJsonLine(name, model, &answer.model(), embedding, output);
}

}  // namespace longshort::client

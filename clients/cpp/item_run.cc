#include "clients/cpp/item_run.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

// Maximum number of concurrent calls: the server decodes the images of one call while the model runs those of another.
constexpr size_t kCallsInFlight = 4;

// Returns what the user can do about a document's error, for the end of the message. For classifiers, the server's
// message names `truncate`.
absl::string_view HintFor(absl::string_view message) {
  const bool is_too_long = absl::StartsWith(message, "number of tokens of ") && !absl::StrContains(message, "truncate");
  return is_too_long ? ". Start the server with a larger --max-prompt-tokens, or split the document" : "";
}

// Writes the answers of a run, shows its progress, and counts the items that failed.
class ItemReport final {
 public:
  ItemReport(ProgressBar::Options progress, const ItemOutput& output, const CommandContext& context)
      : unit_(progress.unit), output_(output), context_(context) {
    bar_.emplace(context.terminal, std::move(progress));
  }

  // Cancels all calls if the output cannot be written.
  void Show(const std::string& name, const v1::ScoreTextsResponse& answer) {
    bar_->Hide();
    if (answer.has_error()) {
      WriteError(name, answer.error());
      output_.skip();
    } else {
      output_.show(name, answer);
    }
    if (context_.terminal.output) ++shown_;
    bar_->Advance();
    CancelUnlessWritable(context_);
  }

  // Writes how many items failed and which files were not read. Errors: `status`, if the run ended early.
  absl::StatusOr<ExitCode> End(const absl::Status& status, const LeftOut& left_out) {
    bar_.reset();
    std::ostream& error = context_.terminal.error;
    std::vector<std::string> parts;
    ExitCode result = ExitCode::kOk;
    for (const auto& [code, description] : kFailures) {
      if (failures_[code] == 0) continue;
      parts.push_back(absl::StrCat(failures_[code], " ", description));
      if (result == ExitCode::kOk) result = code;
    }
    if (!parts.empty())
      error << "longshort: of " << shown_ << " " << unit_ << ", " << absl::StrJoin(parts, ", ") << "\n";
    if (!status.ok() && shown_ > 0) {
      error << "longshort: " << shown_ << " " << unit_ << " were answered before the run ended:\n";
    }
    ReportLeftOut(left_out, context_.terminal);
    LS_RETURN_IF_ERROR(status);
    return result;
  }

 private:
  // The codes of failures, the worst first.
  static constexpr std::array<std::pair<ExitCode, const char*>, 4> kFailures = {
      {{ExitCode::kInvalid, "invalid or not allowed"},
       {ExitCode::kUnavailable, "not served: server full, stopping or unreachable"},
       {ExitCode::kOther, "failed"},
       {ExitCode::kUsage, "unreadable"}}};

  void WriteError(const std::string& name, v1::ItemError error) {
    const auto status = static_cast<absl::StatusCode>(error.code());
    const ExitCode code = ExitCodeOf(absl::Status(status, error.message()));
    const bool is_own = code == ExitCode::kInvalid || code == ExitCode::kUnavailable;
    ++failures_[status == absl::StatusCode::kNotFound ? ExitCode::kUsage : is_own ? code : ExitCode::kOther];
    // The output already shows the name.
    const std::string message(absl::StripPrefix(error.message(), absl::StrCat(name, ": ")));
    if (output_.json_errors) {
      error.set_message(message);
      return WriteErrorJsonLine(name, error, context_.terminal.output);
    }
    context_.terminal.error << name << ": " << absl::StatusCodeToString(status) << ": " << message << HintFor(message)
                            << "\n";
  }

  const std::string unit_;
  const ItemOutput& output_;
  const CommandContext& context_;
  std::optional<ProgressBar> bar_;
  std::map<ExitCode, int64_t> failures_;
  int64_t shown_ = 0;
};

// Cuts a text to what a message may hold if the server truncates it anyway. Errors: INVALID_ARGUMENT if the document
// needs a larger message: gRPC would end the whole stream.
absl::Status FitMessage(int64_t limit, bool truncate, v1::ScoreTextsRequest& item) {
  const auto size = [&] { return static_cast<int64_t>(item.ByteSizeLong()); };
  if (limit == 0 || size() <= limit) return absl::OkStatus();  // 0: the server has no limit
  if (truncate) {
    constexpr int64_t kOtherFields = 1024;
    const int64_t kept = std::max<int64_t>(limit - kOtherFields, 0) / (item.has_second_input() ? 2 : 1);
    const auto cut = [kept](v1::Input& input) {
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

// Checks that --second and --lines suit the number of documents that the model takes together. Errors: UsageError.
absl::Status CheckPairs(const ItemOptions& options, size_t files, const v1::Model& model, bool embeds) {
  const bool compares = model.classifier().documents() == 2;
  const bool must_be_pair = compares && !embeds;
  const bool may_be_pair = must_be_pair || (!compares && model.classifier().max_documents() > 1);
  const bool has_second = !options.form.second.empty();
  if (has_second && !may_be_pair) {
    return UsageError(absl::StrCat("--second: the model ", model.name(),
                                   compares ? " compares two documents, and embeds each by itself: give the files as "
                                              "arguments"
                                            : " takes one document"));
  }
  if (has_second ? files == 1 && !options.form.lines : !must_be_pair) return absl::OkStatus();
  return UsageError(absl::StrCat("the model ", model.name(), must_be_pair ? " compares" : " joins",
                                 " two documents: give one file and --second=FILE, without --lines. For many pairs use "
                                 "longshort-batch"));
}

absl::Status TooLarge(int64_t bytes, int64_t limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("the file has ", bytes, " bytes; the server accepts at most ", limit, " for an image"));
}

using Answers = absl::StatusOr<std::vector<v1::ScoreTextsResponse>>;

struct CallInFlight {
  ImageBatch batch;
  std::future<Answers> answers;  // its destructor waits until the call ends
};

// Makes the call for some images that has these options. Returns an answer for each, in the form that texts have.
Answers AskImages(Client& client, const v1::ScoreTextsOptions& options, Images images) {
  std::vector<v1::ScoreTextsResponse> answers;
  if (images.empty()) return answers;
  if (options.has_embedding()) {
    v1::EmbedRequest request;
    *request.mutable_model() = options.model();
    request.set_pooling(options.embedding().pooling());
    request.set_normalize(options.embedding().normalize());
    request.mutable_images()->Swap(&images);
    LS_ASSIGN_OR_RETURN(v1::EmbedResponse response, client.Embed(request));
    for (v1::EmbedResult& result : *response.mutable_results()) {
      v1::ScoreTextsResponse& answer = answers.emplace_back();
      *answer.mutable_model() = response.model();
      if (result.has_error()) {
        *answer.mutable_error() = std::move(*result.mutable_error());
      } else {
        *answer.mutable_embedding() = std::move(*result.mutable_embedding());
      }
    }
    return answers;
  }
  v1::ClassifyImageRequest request;
  *request.mutable_model() = options.model();
  request.set_top_k(options.top_k());
  request.set_all_logits(options.all_logits());
  request.mutable_images()->Swap(&images);
  LS_ASSIGN_OR_RETURN(v1::ClassifyImageResponse response, client.ClassifyImage(request));
  for (v1::ImageResult& result : *response.mutable_results()) {
    v1::ScoreTextsResponse& answer = answers.emplace_back();
    if (result.has_error()) {
      *answer.mutable_error() = std::move(*result.mutable_error());
    } else {
      *answer.mutable_classification()->mutable_classification() = std::move(*result.mutable_classification());
    }
  }
  return answers;
}

CallInFlight Begin(ImageBatch batch, const v1::ScoreTextsOptions& options, Client& client) {
  std::future<Answers> answers =
      std::async(std::launch::async, [&client, &options, images = std::exchange(batch.images, {})]() mutable {
        return AskImages(client, options, std::move(images));
      });
  return {std::move(batch), std::move(answers)};
}

// Waits for the call. Returns an answer for each name of its batch. Errors: see RunItems.
Answers Finish(CallInFlight& call) {
  LS_ASSIGN_OR_RETURN(const std::vector<v1::ScoreTextsResponse> sent, call.answers.get());
  std::vector<v1::ScoreTextsResponse> answers;
  size_t count = 0;
  for (const absl::Status& status : call.batch.statuses) {
    v1::ScoreTextsResponse& answer = answers.emplace_back();
    if (!status.ok()) {
      *answer.mutable_error() = MakeItemError(status);
    } else if (const size_t index = count++; index < sent.size()) {
      answer = sent[index];
      if (!answer.has_error()) continue;
      // The server names an image by its index in the call; the output shows the file's name.
      const std::string prefix = absl::StrCat("images[", index, "]: ");
      answer.mutable_error()->set_message(std::string(absl::StripPrefix(answer.error().message(), prefix)));
    }
  }
  if (sent.size() == count) return answers;
  return absl::InternalError(absl::StrCat("the server answered ", count, " images with ", sent.size(), " results"));
}

using ShowAnswer = absl::FunctionRef<void(const std::string& name, const v1::ScoreTextsResponse& answer)>;

absl::Status SendTexts(std::vector<std::string> names, const DocumentForm& form, const v1::Limits& limits,
                       const v1::ScoreTextsOptions& options, ShowAnswer show, const CommandContext& context) {
  DocumentSource source(std::move(names), form, context.terminal);
  const auto next = [&] {
    std::optional<Document> document = source.Next();
    if (document.has_value() && document->item.ok()) {
      const absl::Status fits = FitMessage(limits.message_bytes(), options.truncate(), *document->item);
      if (!fits.ok()) document->item = fits;
    }
    return document;
  };
  return context.client.ScoreTexts(options, std::max(limits.window(), 1), next, show, context.terminal.stop_input);
}

absl::Status SendImages(std::vector<std::string> names, const v1::Limits& limits, const v1::ScoreTextsOptions& options,
                        ShowAnswer show, const CommandContext& context) {
  ImageBatches batches(std::move(names), limits, {}, context.terminal);
  std::deque<CallInFlight> calls;
  while (!batches.AtEnd() || !calls.empty()) {
    while (!batches.AtEnd() && calls.size() < kCallsInFlight) {
      calls.push_back(Begin(batches.Next(), options, context.client));
    }
    const Answers answers = Finish(calls.front());
    if (!answers.ok()) context.client.Cancel();  // the results of later calls would follow a gap
    LS_RETURN_IF_ERROR(answers.status());
    for (size_t i = 0; i < answers->size(); ++i) show(calls.front().batch.names[i], (*answers)[i]);
    calls.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace

void ItemOptions::AddTo(OptionTable& table) {
  table.AddSwitch("lines", "Each line is a document.", &form.lines);
  table.AddSwitch("ids", "Documents are lists of token ids instead of text.", &form.ids);
  table.AddSwitch("quiet", "Show no progress.", &quiet);
  table.AddOtherNames({"json-lines"}, "longshort-batch, which reads JSON lines, or --lines");
  table.AddOtherNames({"timings"}, "longshort-load, which measures a server");
}

void ItemOptions::AddForClassifiersTo(OptionTable& table) {
  table.BeginSection("Options for texts:");
  AddTo(table);
  table.Add("second", "FILE", "Second document, for models that compare or join two.", &form.second);
  table.AddSwitch("truncate", "Truncate documents to the model's maximum length.", &truncate);
}

bool TakesTexts(const v1::Model& model) {
  return !model.has_classifier() || model.classifier().input() == v1::CLASSIFIER_INPUT_TEXT;
}

absl::StatusOr<CollectedFiles> CollectItems(const ItemOptions& options, const std::vector<std::string>& arguments,
                                            const v1::Model& model, bool embeds, const CommandContext& context) {
  if (TakesTexts(model)) {
    LS_ASSIGN_OR_RETURN(CollectedFiles files, AsUsage(CollectFiles(arguments, AnyFile)));
    LS_RETURN_IF_ERROR(CheckPairs(options, files.names.size(), model, embeds));
    return files;
  }
  if (options.form.lines || options.form.ids || options.truncate || !options.form.second.empty()) {
    return UsageError(absl::StrCat("--lines, --ids, --truncate and --second are for classifiers of texts; ",
                                   model.name(), " takes images"));
  }
  if (arguments.empty() && context.terminal.input_is_terminal) {
    return UsageError("name an image, a folder, or - for standard input");
  }
  return AsUsage(CollectFiles(arguments, IsImageName, MissingFile::kStays));
}

absl::StatusOr<ExitCode> RunItems(const ItemOptions& options, CollectedFiles files, const v1::Model& model,
                                  v1::ScoreTextsOptions request, const ItemOutput& output,
                                  const CommandContext& context) {
  *request.mutable_model() = SelectorOf(model);
  request.set_truncate(options.truncate);
  const bool texts = TakesTexts(model);
  const auto total = static_cast<int64_t>(options.form.lines ? 0 : files.names.size());
  ItemReport report({.unit = texts ? "documents" : "images", .total = total, .quiet = options.quiet}, output, context);
  const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) { report.Show(name, answer); };
  const absl::Status status =
      texts ? SendTexts(std::move(files.names), options.form, model.limits(), request, show, context)
            : SendImages(std::move(files.names), model.limits(), request, show, context);
  return report.End(status, files.left_out);
}

ImageBatches::ImageBatches(std::vector<std::string> names, const v1::Limits& limits, const Options& options,
                           Terminal& terminal)
    : names_(std::move(names)),
      image_bytes_limit_(limits.image_bytes()),
      images_per_batch_(std::clamp(limits.images(), 1, options.images)),
      bytes_per_batch_(std::min(image_bytes_limit_, options.bytes)),
      terminal_(terminal) {}

ImageBatch ImageBatches::Next() {
  ImageBatch batch;
  int64_t bytes = 0;
  for (; !AtEnd() && static_cast<int32_t>(batch.names.size()) < images_per_batch_; ++next_) {
    absl::StatusOr<std::string> image = waiting_.has_value() ? *std::move(waiting_) : Read(names_[next_]);
    waiting_.reset();
    if (image.ok()) {
      bytes += static_cast<int64_t>(image->size());
      if (!batch.images.empty() && bytes > bytes_per_batch_) {
        waiting_ = std::move(image);
        break;
      }
    }
    batch.names.push_back(names_[next_]);
    batch.statuses.push_back(image.status());
    if (image.ok()) batch.images.Add()->set_encoded(*std::move(image));
  }
  return batch;
}

absl::StatusOr<std::string> ImageBatches::Read(const std::string& name) const {
  std::error_code no_regular_file;  // then the check after reading applies
  const auto size = static_cast<int64_t>(std::filesystem::file_size(name, no_regular_file));
  if (!no_regular_file && size > image_bytes_limit_) return TooLarge(size, image_bytes_limit_);
  absl::StatusOr<std::string> bytes = ReadDocument(name, terminal_);
  if (bytes.ok() && static_cast<int64_t>(bytes->size()) > image_bytes_limit_) {
    return TooLarge(static_cast<int64_t>(bytes->size()), image_bytes_limit_);
  }
  return bytes;
}

}  // namespace longshort::client

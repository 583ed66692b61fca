// `longshort embed`: vectors of images or texts.
#include <deque>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/image_batches.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/npy_file.h"
#include "clients/cpp/text_run.h"

namespace longshort::client {
namespace {

// A call in flight. The destructor waits until it ends.
struct EmbedCall {
  ImageBatch batch;
  v1::EmbedRequest request;
  std::future<absl::StatusOr<v1::EmbedResponse>> response;
};

void BeginEmbedding(Client& client, ImageBatch batch, const v1::EmbedRequest& request, std::deque<EmbedCall>& calls) {
  EmbedCall& call = calls.emplace_back();
  call.batch = std::move(batch);
  call.request = request;
  call.request.mutable_images()->Swap(call.batch.request.mutable_images());
  // push and pop at the ends of a deque do not move its other elements.
  call.response = std::async(std::launch::async, [&client, &request = call.request] {
    return request.images_size() == 0 ? absl::StatusOr<v1::EmbedResponse>(v1::EmbedResponse()) : client.Embed(request);
  });
}

class EmbedCommand final : public Command {
 public:
  EmbedCommand()
      : Command("embed", "Embed images or texts: compute a vector for each",
                R"(Usage: longshort embed [options] [FILE|FOLDER|PATTERN|-]...

Computes a vector for each image or text with a classifier: by default what the model's head reads. The model determines whether
the files are images or texts: see "longshort models".

Arguments, and options for texts, are those of "longshort classify". The output has one line of JSON for each item, in the order
of the files: {"name": ..., "model": ..., "fingerprint": ..., "precision": ..., "values": [...], ...} with the fields of Embedding,
or {"name": ..., "error": {...}}. With --npy, a NumPy file gets the vectors instead: float32 of shape [items, width], with a row
of NaN for an item that failed, which is reported by name. A model that joins two documents embeds pairs, too; one that compares
them embeds each by itself.

If an item cannot be read or embedded, the program continues with the others, and the exit code is that of "longshort classify".

Examples:
  longshort embed --model=languages letter.txt
  longshort embed --model=languages --normalize --lines --npy=lines.npy lines.txt
  longshort embed --model=flowers --npy=photos.npy photos
)") {}

  void AddOptions(OptionTable& table) override {
    table.Add("pooling", "NAME",
              "cls: the CLS token's row; mean: the mean of all tokens' rows. By default, what the model's head reads.",
              &pooling_);
    table.AddSwitch("normalize", "Divide each vector by its length.", &normalize_);
    table.Add("npy", "FILE", "Write the vectors to this NumPy file.", &npy_);
    table.BeginSection("Options for texts:");
    texts_.AddTo(table);
    texts_.AddSecondTo(table);
    table.AddSwitch("truncate", "Truncate documents to the model's maximum length.", &truncate_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_RETURN_IF_ERROR(texts_.Check());
    if (!pooling_.empty() && PoolingOf(pooling_) == v1::POOLING_UNSPECIFIED) {
      return UsageError(absl::StrCat("--pooling is \"", pooling_, "\"; it must be cls or mean"));
    }
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (!model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a language model, which does not embed"));
    }
    if (model.classifier().embedding_width() == 0) {
      return absl::FailedPreconditionError("the server is older than embeddings");
    }
    const bool texts = model.classifier().input() == v1::CLASSIFIER_INPUT_TEXT;
    if (!texts && (texts_.by_lines() || texts_.ids || truncate_ || !texts_.second.empty())) {
      return UsageError(absl::StrCat("--lines, --json-lines, --ids, --truncate and --second are for models of texts; ",
                                     model.name(), " takes images"));
    }
    if (!texts && arguments.empty() && context.terminal.input_is_terminal) {
      return UsageError("name an image, a folder, or - for standard input");
    }
    if (texts) {
      LS_ASSIGN_OR_RETURN(TextFiles files, CollectTexts(texts_, arguments, model, /*embeds=*/true));
      return WithNpy(model, [&](NpyFile* npy) { return EmbedTexts(std::move(files), model, npy, context); });
    }
    LS_ASSIGN_OR_RETURN(CollectedFiles files,
                        AsUsage(CollectFiles(DocumentNames(arguments), IsImageName, MissingFile::kStays)));
    return WithNpy(model, [&](NpyFile* npy) { return EmbedImages(std::move(files), model, npy, context); });
  }

 private:
  // POOLING_UNSPECIFIED for an unknown name.
  static v1::Pooling PoolingOf(const std::string& name) {
    return name == "cls" ? v1::POOLING_CLS : name == "mean" ? v1::POOLING_MEAN : v1::POOLING_UNSPECIFIED;
  }

  // Calls `embed` with the file of --npy, or nullptr.
  absl::StatusOr<ExitCode> WithNpy(const v1::Model& model,
                                   absl::FunctionRef<absl::StatusOr<ExitCode>(NpyFile*)> embed) const {
    if (npy_.empty()) return embed(nullptr);
    LS_ASSIGN_OR_RETURN(NpyFile npy, AsUsage(NpyFile::Create(npy_, model.classifier().embedding_width())));
    absl::StatusOr<ExitCode> code = embed(&npy);
    LS_RETURN_IF_ERROR(npy.Finish());
    return code;
  }

  absl::StatusOr<ExitCode> EmbedTexts(TextFiles files, const v1::Model& model, NpyFile* npy,
                                      const CommandContext& context) const {
    v1::ScoreTextsOptions request;
    request.set_truncate(truncate_);
    request.mutable_embedding()->set_pooling(PoolingOf(pooling_));
    request.mutable_embedding()->set_normalize(normalize_);
    TextRunOptions options = texts_;
    options.npy = npy;
    return RunTexts(options, model, std::move(request), std::move(files), context);
  }

  absl::StatusOr<ExitCode> EmbedImages(CollectedFiles files, const v1::Model& model, NpyFile* npy,
                                       const CommandContext& context) const {
    v1::EmbedRequest request;
    // Pins the version that GetModel described, even if a newer one is loaded meanwhile.
    request.mutable_model()->set_name(model.name());
    request.mutable_model()->set_version(model.version());
    request.set_pooling(PoolingOf(pooling_));
    request.set_normalize(normalize_);
    const auto total = static_cast<int64_t>(files.names.size());
    ImageBatches batches(std::move(files.names), model.limits(), {}, {}, context.terminal);
    ItemFailures failures(context.terminal, /*json=*/npy == nullptr, "images");
    const absl::Status status = [&] {
      ProgressBar progress(context.terminal, {.unit = "images", .total = total, .quiet = texts_.quiet});
      std::deque<EmbedCall> calls;
      absl::Status written;
      while (written.ok() && (!batches.AtEnd() || !calls.empty())) {
        while (!batches.AtEnd() && calls.size() < kImageCallsInFlight)
          BeginEmbedding(context.client, batches.Next(), request, calls);
        written = Write(calls.front(), model, npy, failures, progress, context);
        if (!written.ok()) context.client.Cancel();  // the results of later calls would follow a gap
        calls.pop_front();
      }
      return written;
    }();
    const ExitCode items = failures.Summarize(total);
    ReportLeftOut(files.left_out, context.terminal);
    LS_RETURN_IF_ERROR(status);
    return items;
  }

  // Waits for the call, and writes its results.
  absl::Status Write(EmbedCall& call, const v1::Model& model, NpyFile* npy, ItemFailures& failures,
                     ProgressBar& progress, const CommandContext& context) const {
    LS_ASSIGN_OR_RETURN(v1::EmbedResponse response, call.response.get());
    if (response.results_size() != call.request.images_size()) {
      return absl::InternalError(absl::StrCat("the server answered ", call.request.images_size(), " images with ",
                                              response.results_size(), " results"));
    }
    int next = 0;
    for (size_t i = 0; i < call.batch.names.size(); ++i) {
      v1::EmbedResult unsent;
      if (call.batch.results[i].has_error()) *unsent.mutable_error() = call.batch.results[i].error();
      const int index = next;
      v1::EmbedResult& result = unsent.has_error() ? unsent : *response.mutable_results(next++);
      progress.Hide();
      if (result.has_error()) {
        RemoveImageIndex(index, *result.mutable_error());
        failures.Add(call.batch.names[i], result.error());
        if (npy != nullptr) npy->AddNothing();
      } else if (npy != nullptr) {
        npy->Add(result.embedding().values());
      } else {
        if (!texts_.timings) result.mutable_embedding()->clear_timings();
        WriteAnswerJsonLine(call.batch.names[i], model, &response.model(), result.embedding(), context.terminal.output);
      }
      progress.Advance();
    }
    return context.terminal.output ? absl::OkStatus() : absl::CancelledError("standard output cannot be written");
  }

  std::string pooling_;
  bool normalize_ = false;
  std::string npy_;
  TextRunOptions texts_;
  bool truncate_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeEmbedCommand() { return std::make_unique<EmbedCommand>(); }

}  // namespace longshort::client

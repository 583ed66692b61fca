// `longshort embed`: vectors of images or texts.
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/item_run.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

// A NumPy file (format 1.0) of rows of numbers: float32 of shape [rows, width].
//
// Not thread-safe.
class NpyFile final {
 public:
  // Replaces the file. Errors: NOT_FOUND naming the file and the reason.
  static absl::StatusOr<NpyFile> Create(const std::string& name, int64_t width);

  // REQUIRES: `width` numbers. Errors are reported by Finish.
  void Add(absl::Span<const float> row);
  // Adds a row of NaN, for an item that failed.
  void AddNothing();
  // Writes the number of rows. Without it, the file has none. Errors: INTERNAL if the file could not be written.
  absl::Status Finish();

 private:
  NpyFile(const std::string& name, int64_t width) : name_(name), width_(width), file_(name, std::ios::binary) {}

  std::string Header() const;

  std::string name_;
  int64_t width_;
  int64_t rows_ = 0;
  std::ofstream file_;
};

static_assert(std::endian::native == std::endian::little);

absl::StatusOr<NpyFile> NpyFile::Create(const std::string& name, int64_t width) {
  NpyFile created(name, width);
  if (!created.file_) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  created.file_ << created.Header();
  return created;
}

void NpyFile::Add(absl::Span<const float> row) {
  file_.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
  ++rows_;
}

void NpyFile::AddNothing() {
  Add(std::vector<float>(static_cast<size_t>(width_), std::numeric_limits<float>::quiet_NaN()));
}

absl::Status NpyFile::Finish() {
  file_.seekp(0);
  file_ << Header();
  file_.close();
  if (file_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name_, " cannot be written: ", std::strerror(errno)));
}

// The format's magic string, its version, the length of the rest, and a Python dictionary that ends with a newline. The
// length is a multiple of 64, and the same for any number of rows.
std::string NpyFile::Header() const {
  constexpr size_t kBytes = 128, kBefore = 10;
  std::string text = absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows_, ", ", width_, "), }");
  text.resize(kBytes - kBefore - 1, ' ');
  text += '\n';
  const auto size = static_cast<uint16_t>(text.size());
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(size & 0xFF);
  header += static_cast<char>(size >> 8);
  return header + text;
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

If an item cannot be read or embedded, the program continues with the others, and the exit code is not 0.

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
    options_.AddForClassifiersTo(table);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
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
    LS_ASSIGN_OR_RETURN(CollectedFiles files, CollectItems(options_, arguments, model, /*embeds=*/true, context));
    std::optional<NpyFile> npy;
    if (!npy_.empty()) {
      LS_ASSIGN_OR_RETURN(npy, AsUsage(NpyFile::Create(npy_, model.classifier().embedding_width())));
    }
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      if (npy.has_value()) return npy->Add(answer.embedding().values());
      v1::Embedding embedding = answer.embedding();
      embedding.clear_timings();
      WriteAnswerJsonLine(name, model, &answer.model(), embedding, context.terminal.output);
    };
    const auto skip = [&] {
      if (npy.has_value()) npy->AddNothing();
    };
    v1::ScoreTextsOptions request;
    request.mutable_embedding()->set_pooling(PoolingOf(pooling_));
    request.mutable_embedding()->set_normalize(normalize_);
    absl::StatusOr<ExitCode> code = RunItems(options_, std::move(files), model, std::move(request),
                                             {.json_errors = !npy.has_value(), .show = show, .skip = skip}, context);
    if (npy.has_value()) LS_RETURN_IF_ERROR(npy->Finish());
    return code;
  }

 private:
  // Returns POOLING_UNSPECIFIED for an unknown name.
  static v1::Pooling PoolingOf(const std::string& name) {
    return name == "cls" ? v1::POOLING_CLS : name == "mean" ? v1::POOLING_MEAN : v1::POOLING_UNSPECIFIED;
  }

  std::string pooling_;
  bool normalize_ = false;
  std::string npy_;
  ItemOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakeEmbedCommand() { return std::make_unique<EmbedCommand>(); }

}  // namespace longshort::client

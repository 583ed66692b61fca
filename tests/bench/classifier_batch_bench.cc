// The speed-up of batches: items per second for each batch size and number of threads, as multiples of one item at a
// time on one thread. longshort-classifier-batch-bench [--help]
//
// Each round runs every cell of the table once, so that other load on the machine affects all cells equally. A cell is
// the median of its rounds.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/families/family.h"
#include "models/families/load_model.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "tests/bench/random_model.h"

namespace longshort {
namespace {

struct Options {
  std::vector<std::string> models;
  std::vector<int64_t> items;
  std::vector<int64_t> threads;
  int64_t rounds = 5;
  int64_t tokens = 0;
  bool help = false;
};

// One line of the table: a model, and what it is asked about.
struct Workload {
  std::string model;   // a preset, or a model directory
  int64_t tokens = 0;  // of each document; 0: as many as the model takes
};

// One of each family, and short documents, of which several make one micro-batch.
std::vector<Workload> DefaultWorkloads() {
  return {{"lra-text", 4000}, {"lra-text", 256},     {"lra-retrieval", 4000},
          {"pixels", 0},      {"vil-ls-medium-224"}, {"cvt-ls-13-224"}};
}

// Long Range Arena's image task: 32 x 32 grey values.
std::string PixelsConfig() {
  models::TextClassifierConfig config;
  config.tokenizer = models::DocumentTokenizerKind::kPixels;
  config.vocabulary_size = 256;
  config.max_sequence_length = 1024;
  config.classes = 10;
  return models::ToJson(config);
}

// A model directory with random weights.
absl::Status WriteModel(const std::string& name, const std::string& directory) {
  const std::string config = name == "pixels" ? PixelsConfig() : std::string(models::FindPreset(name));
  if (config.empty()) return absl::NotFoundError(absl::StrCat("'", name, "' is neither a directory nor a preset"));
  return WriteRandomModel(config, directory);
}

// The model with one thread; others are its replicas.
absl::StatusOr<models::LoadedClassifier> Load(const std::string& name) {
  std::string directory = name, written;
  if (!std::filesystem::is_directory(name)) {
    written = (std::filesystem::temp_directory_path() / "longshort-bench-XXXXXX").string();
    if (mkdtemp(written.data()) == nullptr) return absl::InternalError("no temporary directory can be made");
    LS_RETURN_IF_ERROR(WriteModel(name, written));
    directory = written;
  }
  absl::StatusOr<models::LoadedModel> model = models::LoadModel(directory, {.threads = 1});
  if (!written.empty()) std::filesystem::remove_all(written);
  if (!model.ok()) return model.status();
  auto* const classifier = std::get_if<models::LoadedClassifier>(&*model);
  if (classifier == nullptr) return absl::InvalidArgumentError(absl::StrCat(name, " is no classifier"));
  return std::move(*classifier);
}

models::ClassifierItem MakeItem(const models::LoadedClassifier& model, const Workload& workload, uint64_t seed) {
  const models::ClassifierInfo& info = model.weights.info();
  std::mt19937_64 random(seed);
  if (info.input == models::ClassifierInput::kImage) {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(model.preprocessor->pixels())));
    models::ImageItem image{.height = side, .width = side, .values = std::vector<float>(info.channels * side * side)};
    std::normal_distribution<float> value;
    for (float& one : image.values) one = value(random);
    return image;
  }
  models::TokenItem item{.documents = std::vector<std::vector<int32_t>>(info.documents)};
  const int64_t max = info.max_document_tokens;
  for (std::vector<int32_t>& document : item.documents) {
    document.resize(workload.tokens == 0 ? max : std::min(workload.tokens, max));
    for (int32_t& id : document) id = static_cast<int32_t>(1 + random() % (info.vocabulary_size - 1));
  }
  return item;
}

struct Cell {
  int64_t items = 0;
  std::vector<double> items_a_second = {};  // of each round

  double Median() const {
    std::vector<double> sorted = items_a_second;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// The replica for a number of threads, and its cells.
struct Row {
  int64_t threads = 0;
  std::unique_ptr<models::Classifier> classifier;
  std::vector<Cell> cells;
};

// Runs a batch, for short ones several times over: for 50 ms at least.
absl::Status Measure(models::Classifier& classifier, absl::Span<const models::ClassifierItem> items, Cell& cell) {
  std::vector<const models::ClassifierItem*> batch;
  for (int64_t i = 0; i < cell.items; ++i) batch.push_back(&items[i % items.size()]);
  constexpr absl::Duration kShortest = absl::Milliseconds(50);
  const absl::Time begin = absl::Now();
  absl::Duration took;
  int64_t runs = 0;
  for (; took < kShortest; took = absl::Now() - begin, ++runs) LS_RETURN_IF_ERROR(classifier.Classify(batch).status());
  cell.items_a_second.push_back(static_cast<double>(runs * cell.items) / absl::ToDoubleSeconds(took));
  return absl::OkStatus();
}

void Print(const Workload& workload, absl::Span<const Row> rows) {
  const double one = rows.front().cells.front().Median();
  std::printf("\n%s%s: one item at a time on %d thread%s: %.4g items/s\n", workload.model.c_str(),
              workload.tokens == 0 ? "" : absl::StrCat(", ", workload.tokens, " tokens").c_str(),
              static_cast<int>(rows.front().threads), rows.front().threads == 1 ? "" : "s", one);
  std::printf("%-10s", "threads");
  for (const Cell& cell : rows.front().cells) std::printf("%10s", absl::StrCat(cell.items, " items").c_str());
  for (const Row& row : rows) {
    std::printf("\n%-10d", static_cast<int>(row.threads));
    for (const Cell& cell : row.cells) std::printf("%9.2fx", cell.Median() / one);
  }
  std::printf("\n");
  std::fflush(stdout);
}

absl::Status Bench(const Workload& workload, const Options& options) {
  LS_ASSIGN_OR_RETURN(const models::LoadedClassifier model, Load(workload.model));
  constexpr uint64_t kDifferentItems = 8;
  std::vector<models::ClassifierItem> items;
  for (uint64_t seed = 0; seed < kDifferentItems; ++seed) items.push_back(MakeItem(model, workload, seed));
  std::vector<Row> rows;
  for (const int64_t threads : options.threads) {
    LS_ASSIGN_OR_RETURN(auto replica, model.weights.NewReplica({.threads = static_cast<int>(threads)}));
    Row& row = rows.emplace_back(Row{.threads = threads, .classifier = std::move(replica), .cells = {}});
    for (const int64_t count : options.items) row.cells.push_back({.items = count});
    Cell warm_up{.items = 2 * threads};  // every thread takes memory for the first time
    LS_RETURN_IF_ERROR(Measure(*row.classifier, items, warm_up));
  }
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (size_t cell = 0; cell < options.items.size(); ++cell) {
      for (Row& row : rows) LS_RETURN_IF_ERROR(Measure(*row.classifier, items, row.cells[cell]));
    }
  }
  Print(workload, rows);
  return absl::OkStatus();
}

absl::Status Main(const std::vector<std::string>& arguments) {
  Options options;
  OptionTable table;
  table.Add("model", "NAME",
            "A preset (longshort-server describe --help), \"pixels\", or a model directory. Repeat "
            "for more; without, one of each family.",
            &options.models);
  table.Add("items", "N", "Items of a batch. Repeat for more; without, 1, 2, 4, 8, 16, 32.", &options.items);
  table.Add("threads", "N", "Threads. Repeat for more; without, 1 and 2.", &options.threads);
  table.Add("tokens", "N", "Tokens of each document of --model; 0: as many as the model takes.", &options.tokens);
  table.Add("rounds", "N", "How often each batch is measured.", &options.rounds);
  table.AddSwitch("help", "Print this and exit.", &options.help);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (options.help) {
    std::printf("usage: longshort-classifier-batch-bench [options]\n\n%s", table.Help().c_str());
    return absl::OkStatus();
  }
  if (options.items.empty()) options.items = {1, 2, 4, 8, 16, 32};
  if (options.threads.empty()) options.threads = {1, 2};
  const auto is_positive = [](int64_t number) { return number >= 1; };
  if (options.rounds < 1 || !std::all_of(options.items.begin(), options.items.end(), is_positive) ||
      !std::all_of(options.threads.begin(), options.threads.end(), is_positive)) {
    return absl::InvalidArgumentError("--items, --threads and --rounds must be at least 1");
  }
  std::vector<Workload> workloads;
  for (const std::string& model : options.models) workloads.push_back({model, options.tokens});
  if (workloads.empty()) workloads = DefaultWorkloads();
  for (const Workload& workload : workloads) LS_RETURN_IF_ERROR(Bench(workload, options));
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const absl::Status status = longshort::Main({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "longshort-classifier-batch-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

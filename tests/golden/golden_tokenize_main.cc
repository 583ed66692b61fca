// longshort-golden-tokenize: the ids that a served tokenizer gives each text of its input.
//
// Reads one text a line, as JSON {"hex": its bytes} and prints one JSON object a line: {"ids": [...]}.
#include <iostream>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "models/classifier.h"
#include "models/tokenizer/document_tokenizers.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(std::string, tokenizer, "", "bytes_plus_one, listops_2020 or listops_2021");
ABSL_FLAG(std::string, vocabulary, "", "vocabulary.txt of ListOps");
ABSL_FLAG(int64_t, vocabulary_size, 512, "Embedding rows of the model that the tokenizer is for");

namespace longshort {
namespace {

constexpr size_t kVocabularyLimitBytes = 1 << 20;

absl::StatusOr<std::unique_ptr<models::TextEncoder>> MakeTokenizer() {
  const std::string name = absl::GetFlag(FLAGS_tokenizer);
  if (name == "bytes_plus_one") return models::MakeBytesPlusOneTokenizer();
  if (name != "listops_2020" && name != "listops_2021") {
    return absl::InvalidArgumentError(absl::StrCat("--tokenizer is \"", name, "\""));
  }
  const std::string path = absl::GetFlag(FLAGS_vocabulary);
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kVocabularyLimitBytes));
  const models::ListOpsRules rules = name == "listops_2020" ? models::ListOpsRules::k2020 : models::ListOpsRules::k2021;
  return models::LoadListOpsTokenizer(rules, text, path, absl::GetFlag(FLAGS_vocabulary_size));
}

absl::Status Run() {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::TextEncoder> tokenizer, MakeTokenizer());
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json given = nlohmann::json::parse(line);
    LS_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        tokenizer->Encode(absl::HexStringToBytes(given.at("hex").get<std::string>())));
    std::cout << nlohmann::json{{"ids", ids}}.dump() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Prints the ids of texts: --tokenizer=NAME [--vocabulary=FILE]");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = longshort::Run();
  if (!status.ok()) std::cerr << "longshort-golden-tokenize: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}

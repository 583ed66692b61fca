// longshort-golden-tokenize: the ids that a served tokenizer gives each text of its input.
//
// Reads one text a line, as JSON {"hex": its bytes}, and prints one JSON object a line: {"ids": [...]}. With
// --characters, also where each token begins and ends in characters: {"characters": [0, 1, ...]}. With a second text,
// "pair_hex", the ids are those of both, joined. "limit" is the maximum number of ids.
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

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
#include "models/tokenizer/tokenizers.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(std::string, tokenizer, "", "bytes_plus_one, listops_2020, listops_2021 or byte_level_bpe");
ABSL_FLAG(std::string, vocabulary, "", "vocabulary.txt of ListOps, tokenizer.json of byte_level_bpe");
ABSL_FLAG(bool, characters, false, "Print the places of tokens, too");
ABSL_FLAG(int32_t, separator_id, 2, "Between the texts of a pair");
ABSL_FLAG(int64_t, vocabulary_size, 512, "Embedding rows of the model that the tokenizer is for");

namespace longshort {
namespace {

constexpr size_t kVocabularyLimitBytes = 64 << 20;

absl::StatusOr<std::unique_ptr<models::TextEncoder>> MakeTokenizer() {
  const std::string name = absl::GetFlag(FLAGS_tokenizer);
  if (name == "bytes_plus_one") return models::MakeBytesPlusOneTokenizer();
  if (name != "listops_2020" && name != "listops_2021" && name != "byte_level_bpe") {
    return absl::InvalidArgumentError(absl::StrCat("--tokenizer is \"", name, "\""));
  }
  const std::string path = absl::GetFlag(FLAGS_vocabulary);
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kVocabularyLimitBytes));
  if (name == "byte_level_bpe") return models::LoadByteLevelBpe(text, path, absl::GetFlag(FLAGS_vocabulary_size));
  const models::ListOpsRules rules = name == "listops_2020" ? models::ListOpsRules::k2020 : models::ListOpsRules::k2021;
  return models::LoadListOpsTokenizer(rules, text, path, absl::GetFlag(FLAGS_vocabulary_size));
}

absl::StatusOr<nlohmann::json> Answer(const models::TextEncoder& tokenizer, const nlohmann::json& given) {
  const auto text_of = [&](const char* field) { return absl::HexStringToBytes(given.at(field).get<std::string>()); };
  const std::string text = text_of("hex");
  const int64_t limit = given.value("limit", std::numeric_limits<int64_t>::max());
  LS_ASSIGN_OR_RETURN(models::DocumentBeginning document, tokenizer.EncodeBeginning(text, limit));
  if (given.contains("pair_hex")) {
    LS_ASSIGN_OR_RETURN(const models::DocumentBeginning second, tokenizer.EncodeBeginning(text_of("pair_hex"), limit));
    document = models::JoinPair(document, second, absl::GetFlag(FLAGS_separator_id), limit);
  }
  nlohmann::json answer = {{"ids", document.ids}};
  if (!absl::GetFlag(FLAGS_characters)) return answer;
  LS_ASSIGN_OR_RETURN(const std::vector<models::TokenSpan> spans, tokenizer.Spans(text));
  answer["characters"] = nlohmann::json::array();
  for (const models::TokenSpan& span : spans) {
    answer["characters"].push_back(span.character_begin);
    answer["characters"].push_back(span.character_end);
  }
  return answer;
}

absl::Status Run() {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::TextEncoder> tokenizer, MakeTokenizer());
  for (std::string line; std::getline(std::cin, line);) {
    LS_ASSIGN_OR_RETURN(const nlohmann::json answer, Answer(*tokenizer, nlohmann::json::parse(line)));
    std::cout << answer.dump() << "\n";
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

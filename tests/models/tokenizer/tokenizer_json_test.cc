// The files of tests/models/tokenizer/files, which make_files.py writes. The converter's test
// (tests/models/convert/test_tokenizer_files.py) reads the same files and compares them with the package `tokenizers`.
#include "models/tokenizer/tokenizer_json.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/tokenizer/tokenizers.h"
#include "nlohmann/json.hpp"

namespace longshort::models::tokenizer_json_test {

using ::testing::HasSubstr;

std::string ContentOf(const std::string& name) {
  std::ifstream file(std::string(LONGSHORT_TEST_TOKENIZERS "/") + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TokenizerJson, GivesEachFileTheVerdictAndTheIdsOfThePackageTokenizers) {
  const nlohmann::json expected = nlohmann::json::parse(ContentOf("expected.json"));
  ASSERT_GE(expected.size(), 25u);
  for (const auto& [name, wanted] : expected.items()) {
    SCOPED_TRACE(name);
    const std::string file = name + ".json";
    const auto tokenizer = LoadByteLevelBpe(ContentOf(file), file, wanted["vocabulary_size"].get<int64_t>());
    if (!wanted.contains("ids")) {
      EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(file));
      for (const auto& word : wanted["words"]) {
        EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(word.get<std::string>()));
      }
      continue;
    }
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    if (!tokenizer.ok()) continue;
    for (const auto& [text, ids] : wanted["ids"].items()) {
      EXPECT_EQ(*(*tokenizer)->Encode(text), ids.get<std::vector<int32_t>>()) << text;
    }
  }
}

}  // namespace longshort::models::tokenizer_json_test

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/tokenizer/code_points.h"
#include "models/tokenizer/tokenizers.h"
#include "nlohmann/json.hpp"
#include "tests/models/tokenizer/byte_level_bpe_file.h"

// The reference cases (tests/golden/text_classifier/byte_level_bpe) compare ids and offsets with the package
// `tokenizers`.
namespace longshort::models::byte_level_bpe_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 300;

constexpr int32_t kBegin = 0, kEnd = 2, kMask = 4, kSpace = 225, kThe = 262, kSpaceThe = 263;
int32_t Letter(char letter) { return letter - '!' + 5; }

std::unique_ptr<TextEncoder> Load(const nlohmann::json& file = ByteLevelBpeFile()) {
  auto tokenizer = LoadByteLevelBpe(file.dump(), "tokenizer.json", kRows);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::string LoadError(const nlohmann::json& file) {
  const absl::Status status = LoadByteLevelBpe(file.dump(), "tokenizer.json", kRows, kEnd).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::string ErrorAfter(const std::string& pointer, const nlohmann::json& value) {
  nlohmann::json file = ByteLevelBpeFile();
  file[nlohmann::json::json_pointer(pointer)] = value;
  return LoadError(file);
}

TEST(ByteLevelBpe, MergesTheWordsOfATextBetweenItsFirstAndLastToken) {
  const auto tokenizer = Load();
  EXPECT_THAT(*tokenizer->Encode("the the t"), ElementsAre(kBegin, kThe, kSpaceThe, kSpace, Letter('t'), kEnd));
  EXPECT_THAT(*tokenizer->Encode(""), ElementsAre(kBegin, kEnd));
  EXPECT_EQ(tokenizer->Decode(kSpaceThe), " the");
  EXPECT_EQ(tokenizer->Decode(kBegin), "<s>");
  EXPECT_EQ(tokenizer->Decode(kRows), "");
  EXPECT_EQ(tokenizer->Decode(-1), "");
}

TEST(ByteLevelBpe, FindsAddedTokensInTheText) {
  EXPECT_THAT(*Load()->Encode("the  <mask>the"), ElementsAre(kBegin, kThe, kMask, kThe, kEnd));
  EXPECT_THAT(*Load()->Encode("<mask"),
              ElementsAre(kBegin, Letter('<'), Letter('m'), Letter('a'), Letter('s'), Letter('k'), kEnd));
}

TEST(ByteLevelBpe, KeepsTheFirstAndTheLastTokenOfATruncatedText) {
  const auto tokenizer = Load();
  const std::string text(1'000'000, 'a');
  const auto beginning = tokenizer->EncodeBeginning(text, 4);
  EXPECT_THAT(beginning->ids, ElementsAre(kBegin, Letter('a'), Letter('a'), kEnd));
  EXPECT_EQ(beginning->ids.capacity(), 4u);
  EXPECT_EQ(beginning->tokens, 1'000'002);
  EXPECT_THAT(tokenizer->EncodeBeginning("aa", 4)->ids, ElementsAre(kBegin, Letter('a'), Letter('a'), kEnd));
  EXPECT_THAT(tokenizer->EncodeBeginning("aa", 2)->ids, ElementsAre(kBegin, kEnd));
  EXPECT_THAT(tokenizer->EncodeBeginning("aa", 1)->ids, ElementsAre(kBegin));
  EXPECT_THAT(tokenizer->EncodeBeginning("aa", 0)->ids, ElementsAre());
}

TEST(ByteLevelBpe, ReadsBytesThatAreNotUtf8AsReplacementCharacters) {
  const auto tokenizer = Load();
  EXPECT_EQ(*tokenizer->Encode("a\xE2\x82(\xFF"), *tokenizer->Encode("a\xEF\xBF\xBD(\xEF\xBF\xBD"));
}

TEST(ByteLevelBpe, SpansAreThePlacesInTheGivenText) {
  const auto spans = Load()->Spans("\xC3\xA9 the\xE2\x82.");
  // The three bytes of U+FFFD stand for two bytes.
  EXPECT_THAT(*spans, ElementsAre(TokenSpan{0, 0, 0, 0}, TokenSpan{0, 1, 0, 1}, TokenSpan{1, 2, 0, 1},
                                  TokenSpan{3, 6, 2, 5}, TokenSpan{6, 8, 5, 6}, TokenSpan{6, 8, 5, 6},
                                  TokenSpan{6, 8, 5, 6}, TokenSpan{8, 9, 6, 7}, TokenSpan{0, 0, 0, 0}));
}

TEST(ByteLevelBpe, AnAddedSpaceHasNoBytes) {
  nlohmann::json file = ByteLevelBpeFile();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(*Load(file)->Encode("the"), ElementsAre(kBegin, kSpaceThe, kEnd));
  EXPECT_THAT(Load(file)->Spans("a")->at(1), (TokenSpan{0, 0, 1, 1}));
  EXPECT_THAT(Load(file)->Spans("the")->at(1), (TokenSpan{0, 3, 1, 3}));
}

// The time of a word of n letters is in proportion to n log n. If it were to n^2, 64 times the letters would take 4096
// times the time.
TEST(ByteLevelBpe, TakesNoQuadraticTimeForALongWord) {
  const auto tokenizer = Load();
  const auto processor_seconds = [&](size_t letters) {
    std::string word;
    while (word.size() < letters) word += "theth";
    const std::clock_t begin = std::clock();
    EXPECT_TRUE(tokenizer->EncodeBeginning(word, 8).ok());
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  processor_seconds(1 << 13);
  EXPECT_LT(processor_seconds(1 << 19), 1000 * processor_seconds(1 << 13));
}

TEST(ByteLevelBpe, TakesNoQuadraticTimeForThePlacesOfWrongBytes) {
  const auto tokenizer = Load();
  const auto processor_seconds = [&](size_t bytes) {
    const std::string wrong(bytes, '\xFF');
    const std::clock_t begin = std::clock();
    EXPECT_TRUE(tokenizer->Spans(wrong).ok());
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  processor_seconds(1 << 12);
  EXPECT_LT(processor_seconds(1 << 17), 200 * processor_seconds(1 << 12));
}

TEST(ByteLevelBpe, RefusesWhatItDoesNotFollow) {
  EXPECT_THAT(ErrorAfter("/model/type", "WordPiece"), HasSubstr("model.type is 'WordPiece'; it must be \"BPE\""));
  EXPECT_THAT(ErrorAfter("/model/dropout", 0.1), HasSubstr("model.dropout"));
  EXPECT_THAT(ErrorAfter("/model/byte_fallback", true), HasSubstr("model.byte_fallback"));
  EXPECT_THAT(ErrorAfter("/model/end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix"));
  EXPECT_THAT(ErrorAfter("/model/unk_token", "[UNK]"), HasSubstr("model.unk_token"));
  EXPECT_THAT(ErrorAfter("/normalizer", {{"type", "NFC"}}), HasSubstr("normalizer.type is 'NFC'"));
  EXPECT_THAT(ErrorAfter("/pre_tokenizer/type", "Whitespace"), HasSubstr("pre_tokenizer.type"));
  EXPECT_THAT(ErrorAfter("/pre_tokenizer/use_regex", false), HasSubstr("pre_tokenizer.use_regex"));
  EXPECT_THAT(ErrorAfter("/post_processor", nullptr), HasSubstr("post_processor is null; it must be Roberta"));
  EXPECT_THAT(ErrorAfter("/post_processor/type", "BertProcessing"), HasSubstr("post_processor.type"));
  EXPECT_THAT(ErrorAfter("/truncation", {{"direction", "Left"}}), HasSubstr("truncation.direction"));
  EXPECT_THAT(ErrorAfter("/version", "2.0"), HasSubstr("version"));
  EXPECT_THAT(ErrorAfter("/more", 1), HasSubstr("unknown field 'more'"));
}

TEST(ByteLevelBpe, NamesWhatIsWrongInTheFile) {
  EXPECT_THAT(ErrorAfter("/model/vocab/zz", 300), AllOf(HasSubstr("model.vocab.zz is 300"), HasSubstr("0..299")));
  EXPECT_THAT(ErrorAfter("/model/vocab/zz", 7), HasSubstr("an id that no other symbol has"));
  EXPECT_THAT(ErrorAfter("/model/vocab/zz", -1), HasSubstr("model.vocab.zz is -1"));
  EXPECT_THAT(ErrorAfter("/model/merges/0", {"t", "q"}), HasSubstr("model.merges[0]"));
  EXPECT_THAT(ErrorAfter("/model/merges/1", {"t", "h"}), HasSubstr("a pair that is not yet in the list"));
  EXPECT_THAT(ErrorAfter("/model/merges/1", "t h e"), HasSubstr("model.merges[1]"));
  EXPECT_THAT(ErrorAfter("/added_tokens/0/id", 5), HasSubstr("added_tokens[0].id is 5; it must be 4"));
  EXPECT_THAT(ErrorAfter("/added_tokens/0/content", ""), HasSubstr("added_tokens[0].content"));
  EXPECT_THAT(ErrorAfter("/post_processor/cls", {"<s>", 1}), HasSubstr("post_processor.cls[0] is '<s>'"));
  EXPECT_THAT(ErrorAfter("/post_processor/sep", {"<pad>", 1}), HasSubstr("separator_id is 2"));
  EXPECT_EQ(LoadByteLevelBpe("{", "tokenizer.json", kRows).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ByteLevelBpe, WhatBeginsOrEndsASequenceIsNotMasked) {
  const std::string file = ByteLevelBpeFile().dump();
  for (const int32_t padding : {kBegin, kEnd}) {
    const absl::Status status = LoadByteLevelBpe(file, "tokenizer.json", kRows, kEnd, padding).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("padding_id"));
  }
  EXPECT_TRUE(LoadByteLevelBpe(file, "tokenizer.json", kRows, kEnd, 1).ok());
}

TEST(ByteLevelBpe, AWordHasAMaximumLength) {
  const auto tokenizer = Load();
  const std::string word(size_t{1} << 20, '=');
  EXPECT_TRUE(tokenizer->Encode(word).ok());
  for (const std::string& text : {"a " + word + "=", word + word, std::string(word.size(), '\xff')}) {
    EXPECT_EQ(tokenizer->Encode(text).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(tokenizer->Spans(text).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(tokenizer->Encode("a " + word + "=").status().message()), HasSubstr("begins at byte 1"));
}

TEST(ByteLevelBpe, TakesMergesAsStringsAndAModelWithoutItsType) {
  nlohmann::json file = ByteLevelBpeFile();
  file["model"]["merges"] = {"#version: 0.2", "t h", "th e", "\xC4\xA0 the"};
  file["model"].erase("type");
  EXPECT_THAT(*Load(file)->Encode("the"), ElementsAre(kBegin, kThe, kEnd));
}

TEST(ByteLevelBpe, TakesATemplateThatMakesTheSameSequences) {
  const auto special = [](const char* token) {
    return nlohmann::json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  };
  const auto sequence = [](const char* name) { return nlohmann::json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  const auto ids = [](const char* token, int id) {
    return nlohmann::json{
        {"id", token}, {"ids", nlohmann::json::array({id})}, {"tokens", nlohmann::json::array({token})}};
  };
  nlohmann::json form = {
      {"type", "TemplateProcessing"},
      {"single", {special("<s>"), sequence("A"), special("</s>")}},
      {"pair", {special("<s>"), sequence("A"), special("</s>"), special("</s>"), sequence("B"), special("</s>")}},
      {"special_tokens", {{"<s>", ids("<s>", 0)}, {"</s>", ids("</s>", 2)}}}};
  nlohmann::json file = ByteLevelBpeFile();
  file["post_processor"] = form;
  EXPECT_THAT(*Load(file)->Encode("the"), ElementsAre(kBegin, kThe, kEnd));
  form["pair"].erase(3);
  EXPECT_THAT(ErrorAfter("/post_processor", form), HasSubstr("post_processor.pair"));
}

// Of the package tokenizers 0.23.3 (Unicode 16), by Python: FNV-1a over the class of each code point.
TEST(CodePointClasses, AreThoseOfUnicode16) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char32_t point = 0; point < 0x110000; ++point) {
    const bool is_surrogate = point >= 0xD800 && point < 0xE000;
    uint64_t kind = is_surrogate ? 0 : static_cast<uint64_t>(CodePointClasses::Get().Of(point));
    if (!is_surrogate && IsWordCharacter(point)) kind += 4;
    hash = (hash ^ kind) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0xb81c1fc84604be6c);
}

}  // namespace longshort::models::byte_level_bpe_test

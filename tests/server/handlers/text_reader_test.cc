#include "server/handlers/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/status_matchers.h"
#include "tests/server/fakes/plain_names.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort::server::text_reader_test {

using ::testing::ElementsAre;

constexpr FieldPath kPrompt = {.field = "prompt"};

absl::StatusOr<std::vector<int32_t>> Read(const TextInput& input, const core::ServedLanguageModel& model, int64_t max) {
  return ReadText({.input = input, .path = kPrompt}, kPlainNames, model, max);
}

TEST(TextReader, ReadsTextBytesAndIds) {
  const auto model = ByteModel();
  const auto from_text = Read({.kind = TextInput::Kind::kText, .text = "A\n"}, *model, 10);
  ASSERT_TRUE(from_text.ok()) << from_text.status();
  EXPECT_EQ(*Read({.kind = TextInput::Kind::kBytes, .text = "A\n"}, *model, 10), *from_text);
  EXPECT_EQ(*Read({.kind = TextInput::Kind::kIds, .ids = *from_text}, *model, 10), *from_text);
  EXPECT_EQ(from_text->at(1), 2);
  EXPECT_EQ(DecodeTokens(*from_text, *model), "A\n");
}

TEST(TextReader, CountsTokensAgainstTheLimit) {
  const TextInput input = {.kind = TextInput::Kind::kText, .text = "12345"};
  EXPECT_TRUE(Read(input, *ByteModel(), 5).ok());
  EXPECT_EQ(RefusalOf(Read(input, *ByteModel(), 4).status()),
            "number of tokens of beginning is 5; it must be in [1, 4]");
}

TEST(TextReader, AModelWithoutVocabularyTakesIdsOnly) {
  EXPECT_EQ(RefusalOf(Read({.kind = TextInput::Kind::kText, .text = "x"}, *IdModel(), 10).status()),
            "beginning is text; it must be ids, because the model has no vocabulary");
  EXPECT_THAT(*Read({.kind = TextInput::Kind::kIds, .ids = {259}}, *IdModel(), 10), ElementsAre(259));
}

TEST(TextReader, ErrorsUseTheFieldNamesOfTheProtocol) {
  EXPECT_EQ(RefusalOf(Read({}, *ByteModel(), 10).status()), "beginning is unset; it must have words or ids");
  EXPECT_EQ(RefusalOf(Read({.kind = TextInput::Kind::kText}, *ByteModel(), 10).status()),
            "beginning is empty; it must have at least one token");
  EXPECT_EQ(RefusalOf(Read({.kind = TextInput::Kind::kIds, .ids = {7, 260}}, *ByteModel(), 10).status()),
            "beginning, id 1 is 260; it must be in [0, 259]");
}

}  // namespace longshort::server::text_reader_test

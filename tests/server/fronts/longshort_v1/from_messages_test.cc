#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>

#include "server/fronts/longshort_v1/longshort_v1.h"

namespace longshort::server::from_messages_test {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(FromMessages, UnsetSamplingIsTheContractsDefaults) {
  const core::SamplingOptions options = FromMessage(v1::Sampling());
  EXPECT_EQ(options.temperature, 1);
  EXPECT_EQ(options.top_k, 0);
  EXPECT_EQ(options.top_p, 1);
  EXPECT_EQ(options.min_p, 0);
  EXPECT_EQ(options.repetition_penalty, 1);
  EXPECT_FALSE(FromMessage(v1::GenerateRequest()).seed.has_value());
}

TEST(FromMessages, ZeroIsAValueWhereAFieldIsOptional) {
  v1::GenerateRequest message;
  message.mutable_sampling()->set_temperature(0);
  message.mutable_sampling()->set_top_p(0);
  message.mutable_sampling()->set_seed(0);
  message.mutable_session()->set_expected_tokens(0);
  const GenerateCall call = FromMessage(message);
  EXPECT_EQ(call.sampling.temperature, 0);
  EXPECT_EQ(call.sampling.top_p, 0);
  EXPECT_EQ(call.seed, 0U);
  EXPECT_EQ(call.session->expected_tokens, 0);
}

TEST(FromMessages, EveryFieldOfAGenerationIsTaken) {
  v1::GenerateRequest message;
  message.mutable_model()->set_name("m");
  message.mutable_model()->set_version(3);
  message.mutable_prompt()->set_raw("\xFF");
  message.set_max_tokens(7);
  message.set_completions(2);
  message.add_stop("end");
  message.set_token_log_probabilities(true);
  message.set_top_alternatives(4);
  message.set_echo(true);
  message.set_return_raw(true);
  message.mutable_session()->set_id("talk");
  message.mutable_session()->set_must_exist(true);
  v1::Sampling& sampling = *message.mutable_sampling();
  sampling.set_top_k(5);
  sampling.set_min_p(0.25);
  sampling.set_repetition_penalty(1.5);
  sampling.set_frequency_penalty(0.5);
  sampling.set_presence_penalty(-0.5);
  (*sampling.mutable_logit_bias())[7] = 1.75F;
  (*sampling.mutable_logit_bias())[9] = -2.0F;
  const GenerateCall call = FromMessage(message);
  EXPECT_EQ(call.model.name, "m");
  EXPECT_EQ(call.model.version, 3);
  EXPECT_EQ(call.prompts[0].kind, TextInput::Kind::kBytes);
  EXPECT_EQ(call.prompts[0].text, "\xFF");
  EXPECT_EQ(call.max_tokens, 7);
  EXPECT_EQ(call.completions, 2);
  EXPECT_THAT(call.stop, ElementsAre("end"));
  EXPECT_TRUE(call.token_log_probabilities);
  EXPECT_EQ(call.top_alternatives, 4);
  EXPECT_TRUE(call.echo);
  EXPECT_TRUE(call.return_raw);
  EXPECT_EQ(call.session->id, "talk");
  EXPECT_TRUE(call.session->must_exist);
  EXPECT_FALSE(call.session->expected_tokens.has_value());
  EXPECT_EQ(call.sampling.top_k, 5);
  EXPECT_EQ(call.sampling.min_p, 0.25);
  EXPECT_EQ(call.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(call.sampling.frequency_penalty, 0.5);
  EXPECT_EQ(call.sampling.presence_penalty, -0.5);
  EXPECT_THAT(call.sampling.logit_bias, UnorderedElementsAre(testing::Pair(7, 1.75F), testing::Pair(9, -2.0F)));
}

TEST(FromMessages, APromptThatIsSetWithoutContentIsThere) {
  v1::GenerateRequest message;
  EXPECT_TRUE(FromMessage(message).prompts.empty());
  message.mutable_prompt();
  EXPECT_EQ(FromMessage(message).prompts[0].kind, TextInput::Kind::kUnset);
}

// A view of the message: long texts are not copied.
TEST(FromMessages, TextsAndIdsStayWhereTheyAre) {
  v1::ScoreTextRequest message;
  message.add_inputs()->set_text("abc");
  message.add_inputs()->mutable_ids()->add_ids(7);
  message.set_truncate(true);
  message.set_top_k(3);
  message.set_all_logits(true);
  const ScoreCall call = FromMessage(message);
  EXPECT_EQ(call.texts[0].text.data(), message.inputs(0).text().data());
  EXPECT_EQ(call.texts[1].ids.data(), message.inputs(1).ids().ids().data());
  EXPECT_TRUE(call.second_texts.empty());
  EXPECT_TRUE(call.options.truncate);
  EXPECT_EQ(call.options.classes.top_k, 3);
  EXPECT_TRUE(call.options.classes.all_logits);
}

// Images are not copied either, and each is released separately.
TEST(FromMessages, AnImageIsMovedAndLastsAsLongAsItsInput) {
  v1::ClassifyImageRequest message;
  message.add_images()->set_encoded(std::string(1000, 'x'));
  message.add_images()->set_encoded(std::string(1000, 'y'));
  const char* bytes = message.images(0).encoded().data();
  ClassifyCall call = FromMessage(message);
  ASSERT_EQ(call.images.size(), 2U);
  EXPECT_EQ(std::get<std::string_view>(call.images[0].content).data(), bytes);
  EXPECT_NEAR(static_cast<double>(call.images[0].bytes), 1000, 10);
  const std::weak_ptr<const void> first = call.images[0].owner, second = call.images[1].owner;
  call.images.erase(call.images.begin());
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  EXPECT_EQ(std::get<std::string_view>(call.images[0].content), std::string(1000, 'y'));
}

TEST(FromMessages, AnImageWithoutContentHasNone) {
  v1::Image message;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(FromMessage(message).content));
  message.mutable_tensor()->set_height(2);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(FromMessage(message).content));
  message.mutable_tensor()->mutable_float_values()->add_values(0.5F);
  const ImageInput input = FromMessage(message);
  EXPECT_THAT(std::get<absl::Span<const float>>(std::get<models::RawImage>(input.content).values), ElementsAre(0.5F));
}

}  // namespace longshort::server::from_messages_test

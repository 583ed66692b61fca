#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "server/fronts/longshort_v1/longshort_v1.h"

namespace longshort::server {
namespace {

// The options that ScoreTextRequest and the options of a stream have in common.
template <typename Message>
ScoreOptions OptionsOf(const Message& message) {
  return {.token_log_probabilities = message.token_log_probabilities(),
          .top_alternatives = message.top_alternatives(),
          .truncate = message.truncate(),
          .classes = {.top_k = message.top_k(), .all_logits = message.all_logits()}};
}

Pooling PoolingOf(v1::Pooling message) {
  switch (message) {
    case v1::POOLING_UNSPECIFIED:
      return Pooling::kHead;
    case v1::POOLING_CLS:
      return Pooling::kCls;
    case v1::POOLING_MEAN:
      return Pooling::kMean;
    default:
      return Pooling::kUnknown;
  }
}

models::RawImage PixelsOf(const v1::ImageTensor& tensor) {
  models::RawImage raw;
  raw.height = tensor.height();
  raw.width = tensor.width();
  raw.channels = tensor.channels();
  if (tensor.values_case() == v1::ImageTensor::kFloatValues) {
    raw.values = absl::Span<const float>(tensor.float_values().values().data(), tensor.float_values().values_size());
  } else {
    raw.values = absl::Span<const uint8_t>(reinterpret_cast<const uint8_t*>(tensor.uint8_values().data()),
                                           tensor.uint8_values().size());
  }
  return raw;
}

}  // namespace

ModelReference FromMessage(const v1::ModelSelector& message) {
  return {.name = message.name(), .version = message.version()};
}

TextInput FromMessage(const v1::Input& message) {
  switch (message.kind_case()) {
    case v1::Input::kText:
      return {.kind = TextInput::Kind::kText, .text = message.text()};
    case v1::Input::kRaw:
      return {.kind = TextInput::Kind::kBytes, .text = message.raw()};
    case v1::Input::kIds:
      return {.kind = TextInput::Kind::kIds, .ids = absl::MakeConstSpan(message.ids().ids())};
    case v1::Input::KIND_NOT_SET:
      break;
  }
  return {};
}

core::SamplingOptions FromMessage(const v1::Sampling& message) {
  core::SamplingOptions options;
  if (message.has_temperature()) options.temperature = message.temperature();
  if (message.has_top_p()) options.top_p = message.top_p();
  if (message.has_repetition_penalty()) options.repetition_penalty = message.repetition_penalty();
  options.top_k = message.top_k();
  options.min_p = message.min_p();
  options.frequency_penalty = message.frequency_penalty();
  options.presence_penalty = message.presence_penalty();
  for (const auto& [token, bias] : message.logit_bias()) options.logit_bias.emplace_back(token, bias);
  return options;
}

core::SessionReference FromMessage(const v1::Session& message) {
  core::SessionReference session{.id = message.id(), .must_exist = message.must_exist()};
  if (message.has_expected_tokens()) session.expected_tokens = message.expected_tokens();
  return session;
}

ImageInput FromMessage(v1::Image message) {
  ImageInput input;
  input.bytes = static_cast<int64_t>(message.ByteSizeLong());
  const auto kept = std::make_shared<const v1::Image>(std::move(message));
  if (kept->kind_case() == v1::Image::kEncoded) {
    input.content = std::string_view(kept->encoded());
  } else if (kept->kind_case() == v1::Image::kTensor &&
             kept->tensor().values_case() != v1::ImageTensor::VALUES_NOT_SET) {
    input.content = PixelsOf(kept->tensor());
  }
  input.owner = kept;
  return input;
}

ScoreCall FromMessage(const v1::ScoreTextRequest& message) {
  ScoreCall call{.model = FromMessage(message.model()), .options = OptionsOf(message)};
  call.texts.reserve(message.inputs_size());
  for (const v1::Input& input : message.inputs()) call.texts.push_back(FromMessage(input));
  call.second_texts.reserve(message.second_inputs_size());
  for (const v1::Input& input : message.second_inputs()) call.second_texts.push_back(FromMessage(input));
  if (message.has_session()) call.session = FromMessage(message.session());
  return call;
}

StreamedText FromMessage(const v1::ScoreTextsRequest& message) {
  StreamedText streamed{.id = message.id(), .text = FromMessage(message.input())};
  if (message.has_second_input()) streamed.second_text = FromMessage(message.second_input());
  if (message.has_options()) {
    streamed.options = {.model = FromMessage(message.options().model()),
                        .scoring = OptionsOf(message.options()),
                        .keep_alives = message.options().keep_alives()};
    if (message.options().has_embedding()) {
      const v1::EmbeddingOptions& embedding = message.options().embedding();
      streamed.options->scoring.embedding = {.pooling = PoolingOf(embedding.pooling()),
                                             .normalize = embedding.normalize(),
                                             .truncate = message.options().truncate()};
    }
  }
  return streamed;
}

ClassifyCall FromMessage(v1::ClassifyImageRequest& message) {
  ClassifyCall call{.model = FromMessage(message.model()),
                    .options = {.top_k = message.top_k(), .all_logits = message.all_logits()}};
  call.images.reserve(message.images_size());
  for (v1::Image& image : *message.mutable_images()) call.images.push_back(FromMessage(std::move(image)));
  return call;
}

EmbedCall FromMessage(v1::EmbedRequest& message) {
  EmbedCall call{
      .model = FromMessage(message.model()),
      .options = {
          .pooling = PoolingOf(message.pooling()), .normalize = message.normalize(), .truncate = message.truncate()}};
  call.texts.reserve(message.inputs_size());
  for (const v1::Input& input : message.inputs()) call.texts.push_back(FromMessage(input));
  call.second_texts.reserve(message.second_inputs_size());
  for (const v1::Input& input : message.second_inputs()) call.second_texts.push_back(FromMessage(input));
  call.images.reserve(message.images_size());
  for (v1::Image& image : *message.mutable_images()) call.images.push_back(FromMessage(std::move(image)));
  return call;
}

GenerateCall FromMessage(const v1::GenerateRequest& message) {
  GenerateCall call{.model = FromMessage(message.model()),
                    .max_tokens = message.max_tokens(),
                    .completions = message.completions(),
                    .sampling = FromMessage(message.sampling()),
                    .stop = {message.stop().begin(), message.stop().end()},
                    .token_log_probabilities = message.token_log_probabilities(),
                    .top_alternatives = message.top_alternatives(),
                    .echo = message.echo(),
                    .return_raw = message.return_raw()};
  if (message.has_prompt()) call.prompts = {FromMessage(message.prompt())};
  if (message.sampling().has_seed()) call.seed = message.sampling().seed();
  if (message.has_session()) call.session = FromMessage(message.session());
  call.keep_partial = message.keep_partial();
  return call;
}

TokenizeCall FromMessage(const v1::TokenizeRequest& message) {
  return {.model = FromMessage(message.model()), .text = FromMessage(message.input())};
}

ListSessionsCall FromMessage(const v1::ListSessionsRequest& message) {
  return {.model = FromMessage(message.model()),
          .all_owners = message.all_owners(),
          .page_size = message.page_size(),
          .page_token = message.page_token()};
}

CloseSessionCall FromMessage(const v1::CloseSessionRequest& message) {
  CloseSessionCall call{.model = FromMessage(message.model()), .session_id = message.session_id()};
  if (message.has_owner()) call.owner = message.owner();
  call.closing.moved = message.moved();
  if (message.has_expected_tokens()) call.closing.expected_tokens = message.expected_tokens();
  return call;
}

SessionHeader FromMessage(const v1::SessionHeader& message) {
  return {.data_bytes = message.data_bytes(),
          .fingerprint = message.fingerprint(),
          .session_tokens = message.session_tokens(),
          .server = message.server()};
}

Seal FromMessage(const v1::SessionSeal& message) {
  return {.checksum = message.checksum(), .authentication_code = message.authentication_code()};
}

}  // namespace longshort::server

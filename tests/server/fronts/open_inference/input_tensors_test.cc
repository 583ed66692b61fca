#include "server/fronts/open_inference/input_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "tests/server/fronts/open_inference/requests.h"

namespace longshort::server::input_tensors_test {

using inference::ModelInferRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadError(const ModelInferRequest& request) {
  return std::string(InputTensors::Read(request).status().message());
}

// The error of reading the input "x" as texts or images.
std::string TextError(const ModelInferRequest& request) {
  std::vector<int32_t> ids;
  return std::string(InputTensors::Read(request)->Texts("x", 2, &ids).status().message());
}
std::string ImageError(const ModelInferRequest& request) {
  return std::string(InputTensors::Read(request)->Images("x", 2).status().message());
}

TEST(InputTensors, TextsComeRawOrTypedAsAListOrAColumn) {
  for (ModelInferRequest request : {RawRequest("m", "x", {"a", "bc"}), TypedRequest("m", "x", {"a", "bc"})}) {
    for (int column = 0; column < 2; ++column) {
      const InputTensors inputs = *InputTensors::Read(request);
      std::vector<int32_t> ids;
      const std::vector<TextInput> texts = *inputs.Texts("x", 2, &ids);
      ASSERT_EQ(texts.size(), 2);
      EXPECT_EQ(texts[1].kind, TextInput::Kind::kBytes);
      EXPECT_EQ(texts[1].text, "bc");
      request.mutable_inputs(0)->add_shape(1);
    }
  }
}

TEST(InputTensors, TokenIdsAreRowsOfTokens) {
  ModelInferRequest raw;
  AddInput(raw, "x", "INT32", {2, 2});
  raw.add_raw_input_contents(std::string("\1\0\0\0\2\0\0\0\3\0\0\0\xFF\xFF\xFF\xFF", 16));
  ModelInferRequest typed;
  auto& tensor = AddInput(typed, "x", "INT32", {2, 2});
  for (const int32_t id : {1, 2, 3, -1}) tensor.mutable_contents()->add_int_contents(id);
  for (const ModelInferRequest& request : {raw, typed}) {
    std::vector<int32_t> ids;
    const std::vector<TextInput> texts = *InputTensors::Read(request)->Texts("x", 2, &ids);
    ASSERT_EQ(texts.size(), 2);
    EXPECT_THAT(texts[0].ids, ElementsAre(1, 2));
    EXPECT_THAT(texts[1].ids, ElementsAre(3, -1));
  }
}

TEST(InputTensors, PixelsAreImagesOfTheirOwn) {
  ModelInferRequest raw;
  AddInput(raw, "x", "UINT8", {2, 1, 2, 1});
  raw.add_raw_input_contents("\1\2\3\xFF");
  ModelInferRequest typed;
  auto& tensor = AddInput(typed, "x", "UINT8", {2, 1, 2, 1});
  for (const uint32_t value : {1, 2, 3, 255}) tensor.mutable_contents()->add_uint_contents(value);
  for (const ModelInferRequest& request : {raw, typed}) {
    const std::vector<ImageInput> images = *InputTensors::Read(request)->Images("x", 2);
    ASSERT_EQ(images.size(), 2);
    EXPECT_NE(images[0].owner, images[1].owner);
    const models::RawImage& second = std::get<models::RawImage>(images[1].content);
    EXPECT_EQ(second.height, 1);
    EXPECT_EQ(second.width, 2);
    EXPECT_EQ(second.channels, 1);
    EXPECT_THAT(std::get<absl::Span<const uint8_t>>(second.values), ElementsAre(3, 255));
  }
}

TEST(InputTensors, FractionsArePixelsToo) {
  ModelInferRequest raw;
  AddInput(raw, "x", "FP32", {1, 1, 3});
  raw.add_raw_input_contents(std::string("\0\0\0\0\0\0\x80\x3f\0\0\0\x3f", 12));
  ModelInferRequest typed;
  auto& tensor = AddInput(typed, "x", "FP32", {1, 1, 3});
  for (const float value : {0.0F, 1.0F, 0.5F}) tensor.mutable_contents()->add_fp32_contents(value);
  for (const ModelInferRequest& request : {raw, typed}) {
    const std::vector<ImageInput> images = *InputTensors::Read(request)->Images("x", 2);
    ASSERT_EQ(images.size(), 1);
    EXPECT_THAT(std::get<absl::Span<const float>>(std::get<models::RawImage>(images[0].content).values),
                ElementsAre(0, 1, 0.5));
  }
}

TEST(InputTensors, EncodedImagesDoNotShareMemory) {
  const std::vector<ImageInput> images = *InputTensors::Read(RawRequest("m", "x", {"one", "two"}))->Images("x", 2);
  ASSERT_EQ(images.size(), 2);
  EXPECT_EQ(std::get<std::string_view>(images[1].content), "two");
  EXPECT_EQ(images[1].bytes, 3);
  EXPECT_NE(images[0].owner, images[1].owner);
}

TEST(InputTensors, TheTwoFormsDoNotMix) {
  ModelInferRequest both = TypedRequest("m", "x", {"a"});
  both.add_raw_input_contents(RawBytes({"a"}));
  EXPECT_EQ(ReadError(both),
            "input \"x\" has contents, but the request has raw_input_contents; all inputs must use the same form, "
            "which is also the answer's");
  ModelInferRequest fewer = RawRequest("m", "x", {"a"});
  AddInput(fewer, "y", "BYTES", {1});
  EXPECT_EQ(ReadError(fewer), "number of raw_input_contents is 1; it must be 2, as many as inputs, or none");
  ModelInferRequest none;
  AddInput(none, "x", "BYTES", {1});
  EXPECT_EQ(
      TextError(none),
      "number of BYTES contents of input x is 0; it must be 1 by its shape [1], with no elements of other datatypes");
}

TEST(InputTensors, ShapesAreChecked) {
  ModelInferRequest request = RawRequest("m", "x", {"a"});
  auto& shape = *request.mutable_inputs(0)->mutable_shape();
  shape.Set(0, -1);
  EXPECT_EQ(ReadError(request), "the shape of input \"x\" is [-1]; it must be sizes of at least 1");
  shape.Set(0, 0);
  EXPECT_THAT(ReadError(request), HasSubstr("[0]"));
  shape.Set(0, int64_t{1} << 62);
  shape.Add(8);
  EXPECT_THAT(ReadError(request), HasSubstr("of at most 2147483647 elements"));
  shape.Clear();
  EXPECT_EQ(ReadError(request), "number of sizes in the shape of input \"x\" is 0; it must be in [1, 8]");
  for (int i = 0; i < 9; ++i) shape.Add(1);
  EXPECT_THAT(ReadError(request), HasSubstr("is 9; it must be in [1, 8]"));
  shape.Clear();
  shape.Add(1);
  shape.Add(2);
  EXPECT_EQ(TextError(request), "the shape of input \"x\" is [1, 2]; it must be [n] or [n, 1]");
  EXPECT_EQ(ImageError(request), "the shape of input \"x\" is [1, 2]; it must be [images] or [images, 1]");
  shape.RemoveLast();
  shape.Set(0, 2);
  EXPECT_EQ(
      TextError(request),
      "the raw contents of input x end within the length of element 1; their shape has 2, each of which is 4 bytes of "
      "length and its bytes");
}

TEST(InputTensors, ContentsMustBeWhatShapeAndDatatypeSay) {
  ModelInferRequest pixels;
  AddInput(pixels, "x", "UINT8", {1, 1, 3});
  pixels.add_raw_input_contents("rg");
  EXPECT_EQ(ImageError(pixels), "number of raw bytes of input x is 2; it must be 3 by its shape [1, 1, 3]");
  ModelInferRequest typed;
  auto& tensor = AddInput(typed, "x", "UINT8", {1, 1, 1});
  tensor.mutable_contents()->add_uint_contents(256);
  EXPECT_EQ(ImageError(typed), "element 0 of input x is 256; it must be in [0, 255]");
  tensor.mutable_contents()->set_uint_contents(0, 1);
  tensor.mutable_contents()->add_fp32_contents(1);
  EXPECT_THAT(ImageError(typed), HasSubstr("with no elements of other datatypes"));
  ModelInferRequest fractions = pixels;
  fractions.mutable_inputs(0)->set_datatype("FP16");
  EXPECT_EQ(ImageError(fractions),
            "the datatype of input \"x\" is \"FP16\"; it must be BYTES of encoded images, or UINT8 or FP32 pixels");
  EXPECT_EQ(TextError(fractions), "the datatype of input \"x\" is \"FP16\"; it must be BYTES, or INT32 for token ids");
  ModelInferRequest flat = pixels;
  flat.mutable_inputs(0)->mutable_shape()->RemoveLast();
  EXPECT_THAT(ImageError(flat), HasSubstr("[height, width, channels] or [images, height, width, channels]"));
}

TEST(InputTensors, ElementsBeyondTheLimitAreNotRead) {
  EXPECT_EQ(TextError(RawRequest("m", "x", {"", "", ""})),
            "number of elements of input \"x\" is 3; it must be in [1, 2]");
  EXPECT_THAT(ImageError(TypedRequest("m", "x", {"", "", ""})), HasSubstr("is 3; it must be in [1, 2]"));
  ModelInferRequest ids;
  AddInput(ids, "x", "INT32", {3, 1});
  EXPECT_THAT(TextError(ids), HasSubstr("is 3; it must be in [1, 2]"));
  ModelInferRequest pixels;
  AddInput(pixels, "x", "UINT8", {3, 1, 1, 1});
  EXPECT_THAT(ImageError(pixels), HasSubstr("is 3; it must be in [1, 2]"));
}

TEST(InputTensors, InputsOccurOnceAndHaveNoSharedMemory) {
  ModelInferRequest twice = TypedRequest("m", "x", {"a"});
  *twice.add_inputs() = twice.inputs(0);
  EXPECT_EQ(ReadError(twice), "input \"x\" occurs twice; send it once");
  ModelInferRequest shared = TypedRequest("m", "x", {"a"});
  auto& parameters = *shared.mutable_inputs(0)->mutable_parameters();
  parameters["binary_data_size"].set_int64_param(5);
  EXPECT_EQ(ReadError(shared), "");
  parameters["shared_memory_region"].set_string_param("r");
  EXPECT_THAT(ReadError(shared), HasSubstr("shared memory is not supported"));
}

}  // namespace longshort::server::input_tensors_test

// What the requests' messages take of the heap while they are read, by every protocol, against what is counted. The
// heap's blocks are counted by their usable size.

#include <gmock/gmock.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "longshort/v1/inference.pb.h"
#include "open_inference/v2/service.pb.h"
#include "server/fronts/json/connect_codec.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/openai/openai.h"
#include "server/transports/grpc/grpc_service.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LONGSHORT_OTHER_HEAP 1
#endif

namespace longshort::server::request_memory_test {

// The bytes that the test's thread holds, and the most that it held.
thread_local int64_t live = 0;
thread_local int64_t most = 0;

void Count(int64_t bytes) { most = std::max(most, live += bytes); }

}  // namespace longshort::server::request_memory_test

#ifndef LONGSHORT_OTHER_HEAP
void* operator new(size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  longshort::server::request_memory_test::Count(static_cast<int64_t>(malloc_usable_size(block)));
  return block;
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  longshort::server::request_memory_test::Count(-static_cast<int64_t>(malloc_usable_size(block)));
  std::free(block);
}
void operator delete(void* block, size_t /*bytes*/) noexcept { operator delete(block); }
#endif

namespace longshort::server::request_memory_test {

using google::protobuf::Message;

constexpr int64_t kMaxBytes = 16 << 20;
const RequestLimits kLimits = {.prompt_tokens = 1 << 23, .message_bytes = kMaxBytes};

class RequestMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LONGSHORT_OTHER_HEAP
    GTEST_SKIP() << "a sanitizer has its own heap, whose blocks have other sizes";
#endif
  }

  // `make` makes an empty request, which `read` reads with the meter. The first time it also makes what all requests
  // share.
  template <typename Make, typename Read>
  static void Expect(const std::string& name, const Make& make, const Read& read) {
    int64_t measured = 0, counted = 0;
    for (int i = 0; i < 2; ++i) {
      const auto request = make();
      MemoryMeter meter;
      most = live = 0;
      const absl::Status status = read(*request, meter);
      measured = most;
      counted = meter.peak();
      ASSERT_TRUE(status.ok()) << name << ": " << status;
    }
    RecordProperty(name, absl::StrCat(counted, " of ", measured));
    EXPECT_GE(counted, measured) << name;
    EXPECT_LE(static_cast<double>(counted), 1.5 * static_cast<double>(measured)) << name;
  }

  static HttpRequest JsonOf(const std::string& body) {
    HttpRequest request;
    request.body = body;
    request.fields = {{"content-type", "application/json"}};
    return request;
  }

  using MakeCodec = std::function<std::unique_ptr<HttpCodec>()>;
  static void ExpectOf(const std::string& name, const Message& type, const std::string& body, const MakeCodec& make) {
    const auto make_message = [&type] { return std::unique_ptr<Message>(type.New()); };
    Expect(name, make_message, [&](Message& message, MemoryMeter& meter) {
      const std::unique_ptr<HttpCodec> codec = make();
      HttpRequest request = JsonOf(body);
      most = live = 0;
      const absl::Status read = codec->ReadRequest(request, message, meter);
      if (auto* const one = dynamic_cast<v1::GenerateRequest*>(&message); one != nullptr) {
        (void)one->sampling().logit_bias().size();  // copies the entries that JSON has left
      }
      return read;
    });
  }

  template <typename Request>
  static void ExpectOf(const std::string& name, ReadHttp<Request>* read, const std::string& body) {
    Expect(
        name, [] { return std::make_unique<Request>(); },
        [&](Request& request, MemoryMeter& meter) {
          HttpRequest http = JsonOf(body);
          most = live = 0;
          return read(http, kLimits, request, meter);
        });
  }
};

std::string List(int64_t count, const std::string& one, char open = '[', char close = ']') {
  std::string list(1, open);
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&list, i == 0 ? "" : ",", one);
  return list + close;
}

std::string TextOf(int64_t bytes) { return absl::StrCat("\"", std::string(bytes, 'x'), "\""); }

// An object with `count` keys that begin with `key`.
std::string Object(int64_t count, const std::string& key, const std::string& value) {
  std::string object = "{";
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&object, i == 0 ? "" : ",", "\"", key, i, "\":", value);
  return object + "}";
}

std::string Repeat(const std::string& text, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST_F(RequestMemory, Completions) {
  const auto expect = [](const std::string& name, const std::string& fields) {
    ExpectOf(name, ReadCompletions, "{" + fields + "}");
  };
  expect("text", R"("prompt":)" + TextOf(8'000'000));
  expect("escaped text", R"("prompt":")" + Repeat(R"(\u00e9)", 1'000'000) + "\"");
  expect("text of quotes", R"("prompt":")" + Repeat(R"(\")", 1'000'000) + "\"");
  expect("texts", R"("prompt":)" + List(64, TextOf(100'000)));
  expect("ids", R"("prompt":)" + List(1'000'000, "7"));
  expect("lists of ids", R"("prompt":)" + List(64, List(10'000, "50000")));
  expect("stop", R"("prompt":"a","stop":)" + List(16, TextOf(100'000)));
  expect("logit_bias", R"("prompt":"a","logit_bias":)" + Object(1024, "", "-1.5"));
}

TEST_F(RequestMemory, OtherJsonOfOpenAi) {
  ExpectOf("tokenize", ReadTokenize, R"({"prompt":)" + TextOf(4'000'000) + "}");
  ExpectOf("detokenize", ReadDetokenize, R"({"tokens":)" + List(kLimits.described_tokens, "5000000") + "}");
  ExpectOf("embeddings", ReadEmbeddings, R"({"input":)" + List(64, TextOf(100'000)) + "}");
  ExpectOf("embeddings of ids", ReadEmbeddings, R"({"input":)" + List(1'000'000, "7") + "}");
  ExpectOf("predict", ReadPredict, R"({"inputs":)" + List(64, TextOf(100'000)) + "}");
  ExpectOf("predict pairs", ReadPredict, R"({"inputs":)" + List(64, List(2, TextOf(50'000))) + "}");
}

TEST_F(RequestMemory, ConnectJson) {
  const std::vector<Rpc> rpcs = LongshortV1Rpcs();
  const auto expect = [&](const std::string& name, const Message& type, const std::string& body) {
    const auto rpc = std::find_if(rpcs.begin(), rpcs.end(), [&](const Rpc& one) {
      return one.kind == RpcKind::kUnary && one.request->GetDescriptor() == type.GetDescriptor();
    });
    ASSERT_NE(rpc, rpcs.end()) << name;
    HttpRequest head;
    head.method = "POST";
    head.fields = {{"content-type", "application/json"}};
    ExpectOf(name, type, body, [&] { return *MakeConnectCodec(*rpc, head, kMaxBytes); });
  };
  const std::string image = absl::StrCat(R"({"encoded":")", absl::Base64Escape(std::string(100'000, 'x')), "\"}");
  expect("text", v1::TokenizeRequest(), R"({"input":{"text":)" + TextOf(8'000'000) + "}}");
  expect("ids", v1::TokenizeRequest(), R"({"input":{"ids":{"ids":)" + List(1'000'000, "7") + "}}}");
  expect("texts", v1::ScoreTextRequest(), R"({"inputs":)" + List(64, R"({"text":)" + TextOf(100'000) + "}") + "}");
  expect("short texts", v1::ScoreTextRequest(), R"({"inputs":)" + List(8000, R"({"text":"ab"})") + "}");
  expect("images", v1::ClassifyImageRequest(), R"({"images":)" + List(64, image) + "}");
  expect("pixels", v1::ClassifyImageRequest(),
         R"({"images":[{"tensor":{"floatValues":{"values":)" + List(1'000'000, "0.5") + "}}}]}");
  expect("strings", v1::GenerateRequest(), R"({"stop":)" + List(16'000, R"("abcdefghijklmnopqrstuvwxyz")") + "}");
  expect("short strings", v1::GenerateRequest(), R"({"stop":)" + List(16'000, R"("ab")") + "}");
  expect("map", v1::GenerateRequest(), R"({"sampling":{"logitBias":)" + Object(16'000, "1", "-1.5") + "}}");
}

TEST_F(RequestMemory, OpenInferenceRest) {
  const std::vector<Rpc> rpcs = OpenInferenceRpcs();
  const auto rpc = std::find_if(rpcs.begin(), rpcs.end(), [](const Rpc& one) {
    return one.request->GetDescriptor() == inference::ModelInferRequest::descriptor();
  });
  const auto expect = [&](const std::string& name, const std::string& body) {
    ExpectOf(name, inference::ModelInferRequest(), body, [&] { return MakeRestCodec(*rpc, {"m", ""}, kMaxBytes); });
  };
  const auto input = [](const std::string& datatype, int64_t count, const std::string& one) {
    return absl::StrCat(R"({"inputs":[{"name":"x","datatype":")", datatype, R"(","shape":[)", count, R"(],"data":)",
                        List(count, one), "}]}");
  };
  for (const char* datatype : {"UINT8", "INT32", "FP32"}) expect(datatype, input(datatype, 1'000'000, "7"));
  expect("BYTES", input("BYTES", 200'000, R"("ab")"));
  expect("long BYTES", input("BYTES", 64, TextOf(100'000)));
  expect("data first", absl::StrCat(R"({"inputs":[{"data":)", List(1'000'000, "0"),
                                    R"(,"name":"x","datatype":"INT32","shape":[1000000]}]})"));
  expect("parameters", R"({"inputs":[],"parameters":)" + Object(8000, "k", "1") + "}");
  expect("texts of parameters",
         R"({"inputs":[],"parameters":)" + Object(5000, "a longer key than 15 bytes ", TextOf(200)) + "}");
  expect("outputs", R"({"outputs":)" + List(2500, R"({"name":"a","parameters":{"binary_data":true}})") + "}");
  expect("inputs",
         R"({"inputs":)" + List(1200, R"({"name":"a","shape":[1,1,1,1,1,1,1,1],"datatype":"UINT8","data":[1]})") + "}");
}

// Messages in protobuf: in one piece, as HTTP has them, and in pieces, as gRPC has them.
class ProtobufMemory : public RequestMemory {
 protected:
  static void ExpectOfProto(const std::string& name, const Message& message) {
    ExpectOfBytes(name, message, message.SerializeAsString());
  }
  static void ExpectOfBytes(const std::string& name, const Message& type, const std::string& bytes) {
    constexpr size_t kPiece = 10'000;
    const auto budget = std::make_shared<Budget>(int64_t{1} << 40, Budget::Names{"messages", "bytes"});
    for (const size_t piece : {bytes.size(), kPiece}) {
      const auto make = [&type] { return std::unique_ptr<Message>(type.New()); };
      Expect(absl::StrCat(name, piece == kPiece ? " in pieces" : ""), make, [&](Message& message, MemoryMeter& meter) {
        std::vector<grpc::Slice> slices;
        for (size_t at = 0; at < bytes.size(); at += piece) slices.emplace_back(bytes.substr(at, piece));
        grpc::ByteBuffer buffer(slices.data(), slices.size());
        most = live = 0;
        Budget::Share share(budget);
        const absl::Status status = ParseMessage(buffer, message, kMaxBytes, share);
        return status.ok() ? meter.Add(budget->held()) : status;
      });
    }
  }
};

TEST_F(ProtobufMemory, Inputs) {
  v1::TokenizeRequest text, ids;
  text.mutable_input()->set_text(std::string(8'000'000, 'x'));
  ExpectOfProto("text", text);
  for (int i = 0; i < 4'000'000; ++i) ids.mutable_input()->mutable_ids()->add_ids(7);
  ExpectOfProto("ids", ids);
  ExpectOfBytes("ids that are not packed", v1::TokenIds(), Repeat("\x08\x05", 1'000'000));
  v1::ScoreTextRequest texts, short_texts;
  for (int i = 0; i < 64; ++i) texts.add_inputs()->set_text(std::string(100'000, 'x'));
  ExpectOfProto("texts", texts);
  for (int i = 0; i < 8000; ++i) short_texts.add_inputs()->set_text("ab");
  ExpectOfProto("short texts", short_texts);
  v1::ClassifyImageRequest images;
  for (int i = 0; i < 64; ++i) images.add_images()->set_encoded(std::string(100'000, 'x'));
  ExpectOfProto("images", images);
  v1::GenerateRequest strings, short_strings, map;
  for (int i = 0; i < 16'000; ++i) strings.add_stop("abcdefghijklmnopqrstuvwxyz");
  ExpectOfProto("strings", strings);
  for (int i = 0; i < 16'000; ++i) short_strings.add_stop("ab");
  ExpectOfProto("short strings", short_strings);
  for (int i = 0; i < 16'000; ++i) (*map.mutable_sampling()->mutable_logit_bias())[i] = 1;
  ExpectOfProto("map", map);
}

TEST_F(ProtobufMemory, Tensors) {
  const auto expect = [](const std::string& name, int count, const auto& add) {
    inference::ModelInferRequest one;
    auto& contents = *one.add_inputs()->mutable_contents();
    for (int i = 0; i < count; ++i) add(contents);
    ExpectOfProto(name, one);
  };
  constexpr int kMany = 1'000'000;
  expect("bool", kMany, [](auto& contents) { contents.add_bool_contents(true); });
  expect("int", kMany, [](auto& contents) { contents.add_int_contents(7); });
  expect("int64", kMany, [](auto& contents) { contents.add_int64_contents(7); });
  expect("uint", kMany, [](auto& contents) { contents.add_uint_contents(300); });
  expect("uint64", kMany, [](auto& contents) { contents.add_uint64_contents(7); });
  expect("fp32", kMany, [](auto& contents) { contents.add_fp32_contents(7); });
  expect("fp64", kMany, [](auto& contents) { contents.add_fp64_contents(7); });
  expect("bytes", 16'000, [](auto& contents) { contents.add_bytes_contents(std::string(100, 'x')); });
  inference::ModelInferRequest raw, parameters, inputs;
  raw.add_raw_input_contents(std::string(8'000'000, 'x'));
  ExpectOfProto("raw contents", raw);
  for (int i = 0; i < 4000; ++i) {
    (*parameters.mutable_parameters())[absl::StrCat("a longer key than 15 bytes ", i)].set_string_param(
        std::string(100, 'x'));
  }
  ExpectOfProto("parameters", parameters);
  for (int i = 0; i < 2500; ++i) {
    auto& input = *inputs.add_inputs();
    input.set_name("a name of more than 15 bytes");
    input.add_shape(1);
    (*input.mutable_parameters())["key"].set_int64_param(1);
  }
  ExpectOfProto("inputs", inputs);
}

}  // namespace longshort::server::request_memory_test

#include "models/weights/safetensors.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/weights/tensor_bytes.h"

namespace longshort::models::safetensors_test {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

absl::Span<const std::byte> AsBytes(std::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

std::string LengthPrefix(uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, bytes.size());
  return bytes;
}

std::string FileOf(std::string_view header, size_t data_bytes) {
  return LengthPrefix(header.size()) + std::string(header) + std::string(data_bytes, '\x11');
}

// Parses a file with this header and `data_bytes` bytes of data.
absl::Status ParseWith(std::string_view header, size_t data_bytes) {
  const std::string file = FileOf(header, data_bytes);
  return SafetensorsFile::Parse(AsBytes(file), "broken.safetensors").status();
}

// Parses a file with one tensor "t", whose entry is given, and `data_bytes` bytes of data.
absl::Status ParseEntry(std::string_view entry, size_t data_bytes) {
  return ParseWith("{\"t\":" + std::string(entry) + "}", data_bytes);
}

TEST(Safetensors, FindsTensorsWhereTheyLie) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("second":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
                             R"("first":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("scalar":{"dtype":"I16","shape":[],"data_offsets":[11,13]},)"
                             R"("empty":{"dtype":"F64","shape":[0,7],"data_offsets":[8,8]}}  )";
  const std::string bytes = LengthPrefix(header.size()) + header + "abcdefghijklm";
  const auto file = SafetensorsFile::Parse(AsBytes(bytes), "memory");
  ASSERT_THAT(file, IsOk());

  ASSERT_NE(file->Find("second"), nullptr);
  const StoredTensor& second = *file->Find("second");
  EXPECT_EQ(second.type, DataType::kU8);
  EXPECT_THAT(second.shape, ElementsAre(3));
  EXPECT_EQ(absl::MakeConstSpan(BytesOf(*file, second)), AsBytes("ijk"));
  EXPECT_THAT(file->Find("first")->shape, ElementsAre(1, 2));
  EXPECT_EQ(file->Find("first")->offset, 8 + header.size());
  EXPECT_EQ(file->Find("scalar")->bytes, 2);
  EXPECT_EQ(file->Find("empty")->bytes, 0);
  EXPECT_EQ(file->Find("third"), nullptr);
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(file->tensors().size(), 4);
}

TEST(Safetensors, ReadsEveryTypeOfTheFormat) {
  // With the bytes of four elements.
  const std::vector<std::pair<std::string, size_t>> types = {
      {"BOOL", 4}, {"F4", 2},   {"F6_E2M3", 3}, {"F6_E3M2", 3}, {"U8", 4},          {"I8", 4},
      {"U16", 8},  {"I16", 8},  {"F8_E4M3", 4}, {"F8_E5M2", 4}, {"F8_E4M3FNUZ", 4}, {"F8_E5M2FNUZ", 4},
      {"F16", 8},  {"BF16", 8}, {"F8_E8M0", 4}, {"U32", 16},    {"I32", 16},        {"F32", 16},
      {"U64", 32}, {"I64", 32}, {"F64", 32},    {"C64", 32}};
  const auto parsed = [](const std::string& type, int64_t elements, size_t bytes) {
    return ParseEntry(
        absl::StrCat(R"({"dtype":")", type, R"(","shape":[)", elements, R"(],"data_offsets":[0,)", bytes, "]}"), bytes);
  };
  for (const auto& [type, bytes] : types) EXPECT_THAT(parsed(type, 4, bytes), IsOk()) << type;
  EXPECT_THAT(parsed("F4", 3, 2), Refuses(Words{"'t'", "'[3] of F4' is more than 2^63-1 bits, or ends within a byte"}));
}

TEST(Safetensors, AFileWithoutTensorsIsEmptyNotBroken) { EXPECT_THAT(ParseWith("{}", 0), IsOk()); }

TEST(Safetensors, OpensAFileAndKeepsItsTensorsAcrossMoves) {
  const TemporaryDirectory directory;
  const std::string path =
      directory.Write("model.safetensors", FileOf(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4));
  auto opened = SafetensorsFile::Open(path);
  ASSERT_THAT(opened, IsOk());
  const SafetensorsFile moved = *std::move(opened);
  EXPECT_EQ(moved.name(), path);
  EXPECT_THAT(BytesOf(moved, *moved.Find("t")), ::testing::ElementsAreArray(AsBytes("\x11\x11\x11\x11")));
}

TEST(Safetensors, NamesAFileThatCannotBeOpened) {
  const TemporaryDirectory directory;
  const auto missing = SafetensorsFile::Open(directory.File("missing"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), testing::HasSubstr(directory.File("missing")));
  EXPECT_THAT(SafetensorsFile::Open(directory.path()), Refuses(Words{directory.path(), "not a regular file"}));
  EXPECT_THAT(SafetensorsFile::Open(directory.Write("empty", "")), Refuses(Words{"empty", "only 0 bytes"}));
}

// One test for each way in which the header's length can be wrong.
TEST(BrokenSafetensors, TooShortForALength) {
  EXPECT_THAT(SafetensorsFile::Parse(AsBytes("1234567"), "f").status(), Refuses(Words{"f:", "only 7 bytes"}));
}
TEST(BrokenSafetensors, HeaderLongerThanTheFile) {
  EXPECT_THAT(SafetensorsFile::Parse(AsBytes(LengthPrefix(3) + "{}"), "f").status(),
              Refuses(Words{"header length 3", "only 2 bytes"}));
}
TEST(BrokenSafetensors, HeaderOverTheFormatsLimit) {
  EXPECT_THAT(SafetensorsFile::Parse(AsBytes(LengthPrefix(100'000'001) + "{}"), "f").status(),
              Refuses(Words{"header length 100000001", "limit of 100000000"}));
  EXPECT_THAT(SafetensorsFile::Parse(AsBytes(std::string(8, '\xFF') + "{}"), "f").status(),
              Refuses(Words{"18446744073709551615"}));
}

// ... in which it is not the JSON that it should be.
TEST(BrokenSafetensors, EmptyHeader) { EXPECT_THAT(ParseWith("", 0), Refuses(Words{"does not start with '{'"})); }
TEST(BrokenSafetensors, HeaderNotJson) { EXPECT_THAT(ParseWith("{nonsense}", 0), Refuses(Words{"not valid JSON"})); }
TEST(BrokenSafetensors, HeaderNotAnObject) {
  EXPECT_THAT(ParseWith("[]", 0), Refuses(Words{"does not start with '{'"}));
}
TEST(BrokenSafetensors, SpaceBeforeTheHeader) { EXPECT_THAT(ParseWith(" {}", 0), Refuses(Words{"does not start"})); }
TEST(BrokenSafetensors, GarbageAfterTheHeadersJson) {
  EXPECT_THAT(ParseWith("{}x", 0), Refuses(Words{"not valid JSON"}));
  EXPECT_THAT(ParseWith(std::string_view("{}\0x", 4), 0), Refuses(Words{"not valid JSON at byte 3"}));
}
TEST(BrokenSafetensors, NestedWithoutEnd) {
  EXPECT_THAT(ParseWith("{\"t\":" + std::string(1'000'000, '['), 0),
              Refuses(Words{"broken.safetensors", "nested deeper"}));
}
TEST(BrokenSafetensors, MillionsOfValues) {
  std::string header = "{\"t\":{\"dtype\":\"U8\",\"shape\":[1";
  for (int i = 0; i < 2'000'000; ++i) header += ",1";
  EXPECT_THAT(ParseWith(header + "],\"data_offsets\":[0,1]}}", 1), Refuses(Words{"more than 1048576 elements"}));
}
TEST(BrokenSafetensors, TensorNamedTwice) {
  const std::string entry = R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(ParseWith("{" + entry + "," + entry + "}", 1), Refuses(Words{"duplicate key 't'"}));
}

// ... in which a tensor's entry can be wrong.
TEST(BrokenSafetensors, EntryNotAnObject) { EXPECT_THAT(ParseEntry("7", 0), Refuses(Words{"tensor 't'", "number"})); }
TEST(BrokenSafetensors, UnknownKey) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":0})", 1),
              Refuses(Words{"tensor 't'", "unknown key 'extra'"}));
}
TEST(BrokenSafetensors, KeyTwice) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]})", 1),
              Refuses(Words{"duplicate key 'dtype'"}));
}
TEST(BrokenSafetensors, MissingKey) {
  EXPECT_THAT(ParseEntry(R"({"shape":[1],"data_offsets":[0,1]})", 1), Refuses(Words{"'t'", "dtype is missing"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","data_offsets":[0,1]})", 1), Refuses(Words{"'t'", "shape is missing"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1]})", 1), Refuses(Words{"'t'", "data_offsets is missing"}));
}
TEST(BrokenSafetensors, WrongJsonTypes) {
  EXPECT_THAT(ParseEntry(R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})", 1),
              Refuses(Words{"dtype is a JSON number"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", 1),
              Refuses(Words{"shape is a JSON number"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":["1"],"data_offsets":[0,1]})", 1), Refuses(Words{"shape contains"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", 1),
              Refuses(Words{"shape contains '1.0'"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":{"a":0}})", 1), Refuses(Words{"data_offsets is"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[true],"data_offsets":[0,1]})", 1),
              Refuses(Words{"contains 'true'"}));
}
TEST(BrokenSafetensors, UnknownType) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})", 4),
              Refuses(Words{"'t'", "dtype 'F31'"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})", 4), Refuses(Words{"dtype 'f32'"}));
}
TEST(BrokenSafetensors, NegativeDimension) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", 1),
              Refuses(Words{"shape contains '-1'"}));
}
TEST(BrokenSafetensors, DimensionOver64Bits) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]})", 1),
              Refuses(Words{"shape contains"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]})", 1),
              Refuses(Words{"shape contains '9223372036854775808'"}));
}
// 2^32 * 2^32 is 0 in 64 bits, and 2^61 * 8 bytes too: neither may pass for an empty tensor.
TEST(BrokenSafetensors, ShapeWhoseProductOverflows) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
              Refuses(Words{"'t'", "more than 2^63-1 bits"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", 0),
              Refuses(Words{"'t'", "more than 2^63-1 bits"}));
}
TEST(BrokenSafetensors, SizeOtherThanShapeAndTypeSay) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,7]})", 7),
              Refuses(Words{"'t'", "span 7 bytes", "takes 8"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[],"data_offsets":[0,0]})", 0), Refuses(Words{"takes 1"}));
}
TEST(BrokenSafetensors, OffsetsNotTwo) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})", 1), Refuses(Words{"3 numbers"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[]})", 1), Refuses(Words{"0 numbers"}));
}
TEST(BrokenSafetensors, OffsetsThatEndBeforeTheyBegin) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[2,1]})", 2),
              Refuses(Words{"end before they begin"}));
}
TEST(BrokenSafetensors, OffsetsOutsideTheData) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3),
              Refuses(Words{"'t'", "end after the data", "3 bytes"}));
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]})", 3),
              Refuses(Words{"end after the data"}));
}

// ... and in which tensors can lie wrong beside each other.
std::string TwoTensors(std::string_view first_offsets, std::string_view second_offsets) {
  return absl::StrCat(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)", std::string(first_offsets),
                      R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)", std::string(second_offsets), "}}");
}
TEST(BrokenSafetensors, Overlap) {
  EXPECT_THAT(ParseWith(TwoTensors("[0,4]", "[3,7]"), 7), Refuses(Words{"tensor 'b'", "overlap", "ends at 4"}));
  EXPECT_THAT(ParseWith(TwoTensors("[0,4]", "[0,4]"), 4), Refuses(Words{"overlap"}));
}
TEST(BrokenSafetensors, HoleBetweenTensors) {
  EXPECT_THAT(ParseWith(TwoTensors("[0,4]", "[5,9]"), 9), Refuses(Words{"tensor 'b'", "leave a hole", "ends at 4"}));
}
TEST(BrokenSafetensors, HoleBeforeTheFirstTensor) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[1,2]})", 2),
              Refuses(Words{"'t'", "leave a hole"}));
}
TEST(BrokenSafetensors, TrailingBytes) {
  EXPECT_THAT(ParseEntry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})", 3),
              Refuses(Words{"2 bytes after the last"}));
  EXPECT_THAT(ParseWith("{}", 5), Refuses(Words{"5 bytes after the last"}));
}
TEST(BrokenSafetensors, MetadataNotStrings) {
  EXPECT_THAT(ParseWith(R"({"__metadata__":[]})", 0), Refuses(Words{"__metadata__", "array"}));
  EXPECT_THAT(ParseWith(R"({"__metadata__":{"step":3}})", 0), Refuses(Words{"__metadata__", "'step'", "number"}));
}

// No cut of a good file is a good file, and none is read beyond its end (the address sanitizer watches).
TEST(BrokenSafetensors, EveryCutOfAGoodFileIsRefused) {
  const std::string good = FileOf(TwoTensors("[0,4]", "[4,8]"), 8);
  for (size_t length = 0; length < good.size(); ++length) {
    const std::vector<char> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(length));  // exactly this long
    EXPECT_THAT(SafetensorsFile::Parse(AsBytes({cut.data(), cut.size()}), "cut").status(), Refuses(Words{"cut:"}))
        << length;
  }
}

}  // namespace longshort::models::safetensors_test

#include "base/inflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/base/status_matchers.h"

namespace longshort::inflate_test {

enum class Format { kZlib = MAX_WBITS, kGzip = MAX_WBITS + 16 };

std::string Deflate(const std::string& content, Format format) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, static_cast<int>(format), 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Half of it repeats, half does not.
std::string SomeContent(size_t size) {
  std::string content(size, 'x');
  std::mt19937 random(7);
  std::generate(content.begin(), content.begin() + static_cast<int64_t>(size / 2), [&] { return random(); });
  return content;
}

class InflateTest : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(All, InflateTest, ::testing::Values(Format::kZlib, Format::kGzip));

TEST_P(InflateTest, ReturnsTheContentUpToTheMaximum) {
  for (const size_t size : {0, 1, 65535, 65536, 65537, 1000000}) {
    const std::string content = SomeContent(size);
    const std::string packed = Deflate(content, GetParam());
    EXPECT_EQ(Inflate(packed, static_cast<int64_t>(size)).value(), content);
    if (size == 0) continue;
    const absl::Status longer = Inflate(packed, static_cast<int64_t>(size) - 1).status();
    EXPECT_EQ(longer, absl::ResourceExhaustedError(absl::StrCat("the content has more than ", size - 1, " bytes")));
  }
}

TEST_P(InflateTest, TakesTheDataInPiecesOfAnySize) {
  const std::string content = SomeContent(5000);
  const std::string packed = Deflate(content, GetParam());
  for (const size_t piece : {1, 7, 4096}) {
    size_t taken = 0;
    Inflater inflater(
        [&] {
          const std::string_view next = std::string_view(packed).substr(taken, piece);
          taken += next.size();
          return next;
        },
        5000);
    std::string buffer(4999, ' ');
    EXPECT_EQ(inflater.Read(buffer.data(), 4999).value(), 4999u);
    EXPECT_EQ(buffer, content.substr(0, 4999));
    EXPECT_EQ(inflater.Read(buffer.data(), 4999).value(), 1u);
    EXPECT_EQ(inflater.Read(buffer.data(), 4999).value(), 0u);
  }
}

TEST_P(InflateTest, ReadsLittleOfWhatIsTooLong) {
  const std::string zeros = Deflate(std::string(size_t{8} << 20, '\0'), GetParam());
  size_t taken = 0;
  Inflater inflater(
      [&] {
        const std::string_view next = std::string_view(zeros).substr(taken, 16);
        taken += next.size();
        return next;
      },
      1000);
  char buffer[1001];
  EXPECT_EQ(inflater.Read(buffer, sizeof(buffer)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(taken, 200u);
}

TEST_P(InflateTest, RejectsWhatIsNotWholeOrNotAlone) {
  const std::string packed = Deflate(SomeContent(1000), GetParam());
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_EQ(Inflate(packed.substr(0, size), 1000).status(),
              absl::InvalidArgumentError("the compressed data is incomplete"));
  }
  EXPECT_EQ(Inflate(packed + "x", 1000).status(), absl::InvalidArgumentError("other bytes follow the compressed data"));
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - (GetParam() == Format::kGzip ? 5 : 1)] ^= 1;
  EXPECT_EQ(Inflate(wrong_sum, 1000).status(),
            absl::InvalidArgumentError("the compressed data is damaged: incorrect data check"));
}

TEST(Inflate, RejectsOtherFormats) {
  EXPECT_EQ(Inflate("neither of the two", 1000).status(),
            absl::InvalidArgumentError("the compressed data is damaged: incorrect header check"));
}

}  // namespace longshort::inflate_test

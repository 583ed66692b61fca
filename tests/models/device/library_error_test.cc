#include <new>
#include <stdexcept>
#include <string>

#include "ATen/ops/empty.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/zeros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/library.h"

namespace longshort::models::library_error_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

template <typename Function>
absl::Status ErrorOf(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return LibraryError("in a test", error);
  }
  return absl::OkStatus();
}

TEST(LibraryError, SaysWhatWasWrongInALine) {
  const absl::Status status = ErrorOf([] { at::matmul(at::zeros({2, 3}), at::zeros({4, 5})); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("LibTorch failed in a test: mat1 and mat2 shapes cannot be multiplied"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("frame #"))) << "no addresses of the stack";
  EXPECT_EQ(ErrorOf([] { throw std::runtime_error("odd"); }), absl::InternalError("LibTorch failed in a test: odd"));
}

TEST(LibraryError, NoMemoryIsNoDefect) {
  EXPECT_EQ(ErrorOf([] { throw std::bad_alloc(); }).code(), absl::StatusCode::kResourceExhausted);
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends a process that asks for so much";
#endif
  const absl::Status status = ErrorOf([] { at::empty({int64_t{1} << 50}); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace longshort::models::library_error_test

#pragma once

#include <unistd.h>

#include <utility>

namespace longshort::server {

// A file descriptor, closed with the object.
class Descriptor final {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int number() const { return number_; }
  // The caller becomes responsible for closing it.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace longshort::server

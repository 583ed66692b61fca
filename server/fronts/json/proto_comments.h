// The comments of the contracts' .proto files, which the descriptors of compiled messages lack.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>
#include <string_view>

namespace longshort::server {

// Sets of file descriptors with comments, which the build writes into the program, by their files' names.
const std::map<std::string_view, std::string_view>& ProtoDescriptors();

class ProtoComments final {
 public:
  ProtoComments();

  // The comment of a message, a field, an enum, one of its values or an RPC, by its full name; empty if it has none.
  std::string Of(const std::string& full_name) const;

 private:
  google::protobuf::DescriptorPool pool_;
};

}  // namespace longshort::server

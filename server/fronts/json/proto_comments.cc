#include <google/protobuf/descriptor.pb.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/fronts/json/openapi.h"

namespace longshort::server {
namespace {

template <typename Descriptor>
std::string CommentOf(const Descriptor* descriptor) {
  google::protobuf::SourceLocation place;
  if (descriptor == nullptr || !descriptor->GetSourceLocation(&place)) return "";
  const std::string& comment = place.leading_comments.empty() ? place.trailing_comments : place.leading_comments;
  return absl::StrJoin(absl::StrSplit(comment, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
}

}  // namespace

ProtoComments::ProtoComments() {
  for (const auto& [name, content] : ProtoDescriptors()) {
    google::protobuf::FileDescriptorSet set;
    set.ParseFromArray(content.data(), static_cast<int>(content.size()));
    for (const google::protobuf::FileDescriptorProto& file : set.file()) pool_.BuildFile(file);
  }
}

std::string ProtoComments::Of(const std::string& full_name) const {
  for (const std::string& comment :
       {CommentOf(pool_.FindMessageTypeByName(full_name)), CommentOf(pool_.FindFieldByName(full_name)),
        CommentOf(pool_.FindEnumTypeByName(full_name)), CommentOf(pool_.FindEnumValueByName(full_name)),
        CommentOf(pool_.FindMethodByName(full_name))}) {
    if (!comment.empty()) return comment;
  }
  return "";
}

}  // namespace longshort::server

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"
#include "server/fronts/openai/openai.h"

namespace longshort::server {
namespace {

constexpr std::string_view kNewLine = "\r\n";
// RFC 2046 (5.1.1) allows no longer one. A search takes as long as the boundary and the body multiplied.
constexpr size_t kMaxBoundary = 70;
constexpr size_t kMaxHeadOfPart = size_t{8} << 10;

// The parameter of a content type such as multipart/form-data; boundary="x".
std::string BoundaryOf(std::string_view content_type) {
  constexpr std::string_view kName = "boundary=";
  const size_t begin = content_type.find(kName);
  if (begin == std::string_view::npos) return "";
  const std::string_view value = content_type.substr(begin + kName.size());
  return std::string(value.starts_with('"') ? value.substr(1, value.find('"', 1) - 1)
                                            : value.substr(0, value.find(';')));
}

// The name of a part, from its head in lower case (RFC 7578); empty if it has none.
std::string_view NameOfPart(std::string_view head) {
  for (const std::string_view key : {" name=\"", ";name=\""}) {
    const size_t begin = head.find(key);
    if (begin == std::string_view::npos) continue;
    const std::string_view name = head.substr(begin + key.size());
    return name.substr(0, name.find('"'));
  }
  return "";
}

// The content of the part that is a file.
absl::StatusOr<std::string_view> FileOfForm(std::string_view body, std::string_view content_type, SetFormField set) {
  constexpr size_t kMaxValue = 1024;
  const std::string boundary = BoundaryOf(content_type);
  if (boundary.empty())
    return absl::InvalidArgumentError("the content type has no boundary; multipart bodies need one");
  if (boundary.size() > kMaxBoundary) {
    return absl::InvalidArgumentError(
        absl::StrCat("the boundary has ", boundary.size(), " characters; it must have at most ", kMaxBoundary));
  }
  const std::string delimiter = absl::StrCat("--", boundary);
  std::optional<std::string_view> file;
  size_t begin = body.find(delimiter);
  while (begin != std::string_view::npos) {
    begin += delimiter.size();
    size_t head_end = body.substr(begin, kMaxHeadOfPart).find("\r\n\r\n");
    if (head_end == std::string_view::npos) {
      if (body.size() - begin <= kMaxHeadOfPart) break;
      return absl::InvalidArgumentError(
          absl::StrCat("the head of a part of the form has no end; it must have at most ", kMaxHeadOfPart, " bytes"));
    }
    head_end += begin;
    const size_t content = head_end + 2 * kNewLine.size();
    const size_t end = body.find(absl::StrCat("\r\n", delimiter), content);
    if (end == std::string_view::npos) break;
    const std::string head = absl::AsciiStrToLower(std::string(body.substr(begin, head_end - begin)));
    const std::string_view name = NameOfPart(head), value = body.substr(content, end - content);
    if (!file.has_value() && (name == "image" || absl::StrContains(head, "filename"))) {
      file = value;
    } else {
      LS_RETURN_IF_ERROR(set(std::string(name), std::string(value.substr(0, kMaxValue))));
    }
    begin = end + kNewLine.size();
  }
  if (!file.has_value()) return absl::InvalidArgumentError("the form has no file; send one: curl -F image=@photo.jpg");
  return *file;
}

}  // namespace

absl::Status KeepFileOfForm(HttpRequest& request, SetFormField set) {
  LS_ASSIGN_OR_RETURN(const std::string_view file,
                      FileOfForm(request.body, request.Find("content-type").value_or(""), set));
  request.body.erase(0, static_cast<size_t>(file.data() - request.body.data()));
  request.body.resize(file.size());
  return absl::OkStatus();
}

absl::StatusOr<std::string> TakeImage(HttpRequest& request, MemoryMeter& meter) {
  if (request.body.empty()) return absl::InvalidArgumentError("the body is empty; it must be an image file");
  LS_RETURN_IF_ERROR(meter.Add(HeapBytesOfText(request.body.capacity())));
  return std::move(request.body);
}

absl::StatusOr<std::string> ImageOfText(const std::string& field, std::string_view text, MemoryMeter& meter) {
  if (text.starts_with("data:")) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(";base64")) {
      return absl::InvalidArgumentError(absl::StrCat(field, " is a data URL without base64; it must have ;base64,"));
    }
    text.remove_prefix(comma + 1);
  }
  LS_RETURN_IF_ERROR(meter.Add(HeapBytesOfText(text.size() / 4 * 3 + 3)));
  std::string image;
  if (text.empty() || !absl::Base64Unescape({text.data(), text.size()}, &image)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is not an image in base64, or a data URL of one"));
  }
  return image;
}

}  // namespace longshort::server

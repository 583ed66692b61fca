#include <zstd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/inflate.h"
#include "base/status_macros.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

// Shorter bodies fit into one packet anyway.
constexpr size_t kMinBytes = 1400;
constexpr int kFast = 1;
// Larger windows, which zstd's --ultra and --long make, would cost the server more memory.
constexpr int kZstdWindowLog = 23;
constexpr int64_t kZstdWindowBytes = int64_t{1} << kZstdWindowLog;
// A zstd body may have so many frames. An empty one takes 50 ns for each of its bytes.
constexpr int kMaxZstdFrames = 256;
// Codings of an Accept-Encoding field that are looked at. Browsers send five.
constexpr int kMaxChoices = 32;

absl::StatusOr<std::string> DecodeZstd(std::string_view packed, int64_t max_bytes, InflatedText::Charge charge) {
  constexpr size_t kPieceBytes = size_t{64} << 10;
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (context == nullptr) return absl::InternalError("zstd has no memory");
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  InflatedText text(max_bytes, std::move(charge));
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t left = 1;
  int frames = 0;
  for (int64_t content = 0;;) {
    const size_t read_before = in.pos;
    const auto decode = [&](char* place) -> absl::StatusOr<size_t> {
      ZSTD_outBuffer out{place, kPieceBytes, 0};
      left = ZSTD_decompressStream(context.get(), &out, &in);
      if (ZSTD_isError(left) != 0) return absl::InvalidArgumentError(absl::StrCat("zstd: ", ZSTD_getErrorName(left)));
      if (left == 0 && ++frames > kMaxZstdFrames) {
        return absl::InvalidArgumentError(absl::StrCat("zstd: the body has over ", kMaxZstdFrames, " frames"));
      }
      return out.pos;
    };
    LS_ASSIGN_OR_RETURN(const size_t written, text.Append(kPieceBytes, decode));
    content += static_cast<int64_t>(written);
    LS_RETURN_IF_ERROR(CheckInflation(static_cast<int64_t>(in.pos), content, max_bytes));
    const bool stands_still = written == 0 && in.pos == read_before;
    if ((in.pos == in.size && written < kPieceBytes) || stands_still) break;
  }
  if (left != 0) return absl::InvalidArgumentError("zstd: the data ends too early");
  return text.Take();
}

bool Accepts(const std::string& accepted, absl::string_view coding) {
  int choices = 0;
  for (const absl::string_view choice : absl::StrSplit(accepted, ',')) {
    if (++choices > kMaxChoices) return false;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(choice, absl::MaxSplits(';', 1));
    const absl::string_view weight = absl::StripAsciiWhitespace(parts.second);
    const bool is_refused = weight == "q=0" || weight == "q=0.0" || weight == "q=0.00" || weight == "q=0.000";
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first), coding)) return !is_refused;
  }
  return false;
}

std::optional<std::string> Zstd(std::string_view content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), kFast);
  if (ZSTD_isError(size) != 0) return std::nullopt;
  packed.resize(size);
  return packed;
}

}  // namespace

bool IsCoded(std::string_view coding) {
  return !coding.empty() && !absl::EqualsIgnoreCase(absl::string_view(coding.data(), coding.size()), "identity");
}

absl::Status DecodeContent(std::string_view coding, int64_t max_bytes, const InflatedText::Charge& charge,
                           std::string& body) {
  if (!IsCoded(coding)) return absl::OkStatus();
  absl::Status charged;
  const auto note = [&](int64_t bytes) { return charged = charge(bytes); };
  const std::string name = absl::AsciiStrToLower(absl::string_view(coding.data(), coding.size()));
  absl::StatusOr<std::string> content;
  if (name == "gzip" || name == "x-gzip" || name == "deflate") {
    content = Inflate(body, max_bytes, note);
  } else if (name == "zstd") {
    content = DecodeZstd(body, max_bytes, [&](int64_t bytes) { return note(bytes + kZstdWindowBytes); });
  } else {
    return HttpError(415,
                     absl::StrCat("the request's content coding is ", name.substr(0, 64),
                                  "; this server reads gzip, deflate and zstd"),
                     absl::StatusCode::kUnimplemented);
  }
  LS_RETURN_IF_ERROR(charged);
  if (absl::IsResourceExhausted(content.status())) {
    return HttpError(413, absl::StrCat("the request's body is too large: ", content.status().message()));
  }
  LS_RETURN_IF_ERROR(content.status());
  body = *std::move(content);
  return absl::OkStatus();
}

std::string_view AcceptedCoding(const HttpRequest& request, std::string_view field) {
  const std::string accepted = request.Find(field).value_or("");
  for (const char* coding : {"zstd", "gzip"}) {
    if (Accepts(accepted, coding)) return coding;
  }
  return "";
}

std::optional<std::string> EncodeContent(std::string_view coding, std::string_view content) {
  if (coding.empty() || content.size() < kMinBytes) return std::nullopt;
  std::optional<std::string> packed = coding == "zstd" ? Zstd(content) : Gzip(content, kFast);
  if (packed.has_value() && packed->size() >= content.size()) return std::nullopt;
  return packed;
}

void EncodeContent(const HttpRequest& request, HttpResponse& response) {
  if (response.body.size() < kMinBytes) return;
  const std::string_view coding = AcceptedCoding(request, "accept-encoding");
  std::optional<std::string> packed = EncodeContent(coding, response.body);
  if (!packed.has_value()) return;
  response.body = *std::move(packed);
  response.fields.emplace_back("Content-Encoding", std::string(coding));
  response.fields.emplace_back("Vary", "Accept-Encoding");
}

}  // namespace longshort::server

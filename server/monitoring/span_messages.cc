#include "server/monitoring/span_messages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/random_number.h"
#include "base/utf8.h"
#include "longshort_version.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/monitoring/code_name.h"
#include "server/monitoring/wire_writer.h"

namespace longshort {
namespace {

namespace otlp = opentelemetry::proto;
using otlp::collector::trace::v1::ExportTraceServiceRequest;
using otlp::common::v1::AnyValue;
using otlp::common::v1::KeyValue;
using otlp::trace::v1::Span;
using otlp::trace::v1::Status;

constexpr char kSchema[] = "https://opentelemetry.io/schemas/1.45.0";
constexpr char kName[] = "longshort";
constexpr char kServiceName[] = "longshort-server";
constexpr size_t kMostMessageBytes = 256;

// A message with text that is not UTF-8 would be refused as a whole.
std::string Utf8(std::string text) {
  if (IsUtf8(text)) return text;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0x80) != 0; }, '?');
  return text;
}

// Attributes of a span: KeyValue messages, each with an AnyValue in it.
class AttributeWriter final {
 public:
  explicit AttributeWriter(std::string& span) : writer_(span) {}

  void Write(std::string_view key, std::string_view text) {
    Begin(key, WireWriter::LengthOfText(text.size()));
    writer_.Text(AnyValue::kStringValueFieldNumber, text);
  }
  void Write(std::string_view key, int64_t number) {
    Begin(key, WireWriter::LengthOfNumber(static_cast<uint64_t>(number)));
    writer_.Number(AnyValue::kIntValueFieldNumber, static_cast<uint64_t>(number));
  }
  void Write(std::string_view key, double number) {
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    Begin(key, WireWriter::kLengthOfFixed64);
    writer_.Fixed64(AnyValue::kDoubleValueFieldNumber, bits);
  }
  void Write(std::string_view key, bool truth) {
    Begin(key, WireWriter::LengthOfNumber(1));
    writer_.Number(AnyValue::kBoolValueFieldNumber, truth ? 1 : 0);
  }
  void Write(std::string_view key, const std::vector<std::string>& texts) {
    otlp::common::v1::ArrayValue array;
    for (const std::string& text : texts) array.add_values()->set_string_value(Utf8(text));
    const std::string bytes = array.SerializeAsString();
    Begin(key, WireWriter::LengthOfText(bytes.size()));
    writer_.Text(AnyValue::kArrayValueFieldNumber, bytes);
  }

 private:
  void Begin(std::string_view key, size_t value_bytes) {
    writer_.Message(Span::kAttributesFieldNumber,
                    WireWriter::LengthOfText(key.size()) + WireWriter::LengthOfText(value_bytes));
    writer_.Text(KeyValue::kKeyFieldNumber, key);
    writer_.Message(KeyValue::kValueFieldNumber, value_bytes);
  }

  WireWriter writer_;
};

// Those codes that the conventions take as a server's errors: others are what the client asked for.
bool IsServersError(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kUnimplemented || code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDataLoss;
}

uint32_t Flags(const TraceContext& context, bool parent_is_remote) {
  uint32_t flags = otlp::trace::v1::SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK;
  if (context.sampled) flags |= 1;
  if (context.random) flags |= 2;
  if (parent_is_remote) flags |= otlp::trace::v1::SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK;
  return flags;
}

// A random UUID (version 4).
std::string DrawInstanceId() {
  const uint64_t high = RandomNumber();
  const uint64_t low = RandomNumber();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, high >> 16 & 0xFFFF, high & 0xFFF,
                         0x8000 | (low >> 48 & 0x3FFF), low & 0xFFFF'FFFF'FFFF);
}

}  // namespace

otlp::resource::v1::Resource ResourceOf(const TracingOptions& options) {
  // What is said last counts.
  const TextPairs own = {{"service.name", kServiceName},
                         {"service.version", std::string(kVersion)},
                         {"service.instance.id", DrawInstanceId()},
                         {"telemetry.sdk.name", kName},
                         {"telemetry.sdk.language", "cpp"},
                         {"telemetry.sdk.version", std::string(kVersion)}};
  otlp::resource::v1::Resource resource;
  for (const TextPairs& pairs : {own, options.resource}) {
    for (const auto& [key, value] : pairs) {
      auto& attributes = *resource.mutable_attributes();
      auto same = std::find_if(attributes.begin(), attributes.end(), [&](const auto& one) { return one.key() == key; });
      auto& attribute = same != attributes.end() ? *same : *attributes.Add();
      attribute.set_key(key);
      attribute.mutable_value()->set_string_value(value);
    }
  }
  return resource;
}

SpanEncoder::SpanEncoder(const otlp::resource::v1::Resource& resource) {
  otlp::trace::v1::ResourceSpans of_resource;
  *of_resource.mutable_resource() = resource;
  of_resource.set_schema_url(kSchema);
  resource_fields_ = of_resource.SerializeAsString();
  otlp::trace::v1::ScopeSpans of_scope;
  of_scope.mutable_scope()->set_name(kName);
  of_scope.mutable_scope()->set_version(std::string(kVersion));
  of_scope.set_schema_url(kSchema);
  scope_fields_ = of_scope.SerializeAsString();
}

std::string SpanEncoder::Encode(const std::vector<std::unique_ptr<CallTrace>>& calls, absl::Duration wall_clock) {
  wall_clock_ = wall_clock;
  spans_.clear();
  for (const std::unique_ptr<CallTrace>& call : calls) Add(*call);
  const size_t scope_bytes = scope_fields_.size() + spans_.size();
  std::string request;
  WireWriter writer(request);
  writer.Message(ExportTraceServiceRequest::kResourceSpansFieldNumber,
                 resource_fields_.size() + WireWriter::LengthOfText(scope_bytes));
  request += resource_fields_;
  writer.Message(otlp::trace::v1::ResourceSpans::kScopeSpansFieldNumber, scope_bytes);
  request += scope_fields_;
  request += spans_;
  return request;
}

void SpanEncoder::Add(const CallTrace& call) {
  trace_id_ = call.context.trace_id.ToBytes();
  call_id_ = call.context.span_id.ToBytes();
  WriteCall(call);
  AddSpan();
  for (const StageSpan& stage : call.stages) {
    WriteStage(stage, call);
    AddSpan();
  }
}

void SpanEncoder::AddSpan() {
  WireWriter(spans_).Text(otlp::trace::v1::ScopeSpans::kSpansFieldNumber, span_);
  span_.clear();
}

void SpanEncoder::WriteIds(const CallTrace& call, const std::string& id, const std::string& parent,
                           bool parent_is_remote) {
  WireWriter writer(span_);
  writer.Text(Span::kTraceIdFieldNumber, trace_id_);
  writer.Text(Span::kSpanIdFieldNumber, id);
  if (!call.context.state.empty()) writer.Text(Span::kTraceStateFieldNumber, call.context.state);
  if (!parent.empty()) writer.Text(Span::kParentSpanIdFieldNumber, parent);
  writer.Fixed32(Span::kFlagsFieldNumber, Flags(call.context, parent_is_remote));
}

void SpanEncoder::WriteTimes(absl::Time begin, absl::Time end) {
  WireWriter writer(span_);
  writer.Fixed64(Span::kStartTimeUnixNanoFieldNumber, static_cast<uint64_t>(absl::ToUnixNanos(begin + wall_clock_)));
  writer.Fixed64(Span::kEndTimeUnixNanoFieldNumber,
                 static_cast<uint64_t>(absl::ToUnixNanos(std::max(begin, end) + wall_clock_)));
}

void SpanEncoder::WriteCall(const CallTrace& call) {
  WriteIds(call, call_id_, call.parent.valid() ? call.parent.ToBytes() : "", call.parent.valid() && call.is_remote);
  WireWriter writer(span_);
  writer.Text(Span::kNameFieldNumber, call.method);
  writer.Number(Span::kKindFieldNumber, call.is_remote ? Span::SPAN_KIND_SERVER : Span::SPAN_KIND_INTERNAL);
  WriteTimes(call.begin, call.end);
  AttributeWriter attributes(span_);
  if (call.is_remote) {
    attributes.Write("rpc.system.name", std::string_view("grpc"));
    attributes.Write("rpc.method", std::string_view(call.method));
  }
  const std::string code = CodeName(call.code);
  attributes.Write("rpc.status_code", std::string_view(code));
  for (const Attribute& attribute : call.attributes) {
    if (const auto* text = std::get_if<std::string>(&attribute.value); text != nullptr) {
      attributes.Write(attribute.key, std::string_view(IsUtf8(*text) ? *text : Utf8(*text)));
    } else {
      std::visit([&](const auto& value) { attributes.Write(attribute.key, value); }, attribute.value);
    }
  }
  if (call.parts > 1) attributes.Write("longshort.parts", call.parts);
  if (!IsServersError(call.code)) return;
  attributes.Write("error.type", std::string_view(code));
  Status status;
  status.set_code(Status::STATUS_CODE_ERROR);
  status.set_message(Utf8(call.message.substr(0, kMostMessageBytes)));
  writer.Text(Span::kStatusFieldNumber, status.SerializeAsString());
}

void SpanEncoder::WriteStage(const StageSpan& stage, const CallTrace& call) {
  WriteIds(call, SpanId{RandomNumber() | 1}.ToBytes(), call_id_, false);
  WireWriter writer(span_);
  writer.Text(Span::kNameFieldNumber, stage.name);
  writer.Number(Span::kKindFieldNumber, Span::SPAN_KIND_INTERNAL);
  // The engine and who made the call looked at the clock one after the other.
  const absl::Time begin = std::clamp(stage.begin, call.begin, call.end);
  WriteTimes(begin, std::clamp(stage.end, begin, call.end));
  AttributeWriter attributes(span_);
  if (stage.part >= 0 && call.parts > 1) attributes.Write("longshort.part", stage.part);
  for (const auto& [key, count] : stage.counts) {
    if (key != nullptr) attributes.Write(key, count);
  }
}

}  // namespace longshort

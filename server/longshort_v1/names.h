// How longshort.v1 calls its RPCs and their fields.
#pragma once

#include <string>

#include "server/calls/call_names.h"

namespace longshort {

// The names of one RPC of longshort.v1.
class V1Names final : public CallNames {
 public:
  // Both are literals.
  explicit constexpr V1Names(const char* method, const char* session_id = "session_id")
      : method_(method), rpc_(AfterSlash(method)), session_id_(session_id) {}

  const char* rpc() const override { return rpc_; }
  const char* method() const override { return method_; }
  const char* streaming_rpc() const override { return "GenerateStream"; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override;
  std::string KindsOf(CallField field) const override;

 private:
  const char* const method_;
  const char* const rpc_;
  const char* const session_id_;  // RPCs name the session in different places
};

inline const V1Names kScoreTextNames("longshort.v1.Inference/ScoreText", "session.id");
inline const V1Names kScoreTextsNames("longshort.v1.Inference/ScoreTexts");
inline const V1Names kClassifyImageNames("longshort.v1.Inference/ClassifyImage");
inline const V1Names kGenerateNames("longshort.v1.Inference/Generate", "session.id");
inline const V1Names kGenerateStreamNames("longshort.v1.Inference/GenerateStream", "session.id");
inline const V1Names kTokenizeNames("longshort.v1.Inference/Tokenize");
inline const V1Names kListModelsNames("longshort.v1.Models/ListModels");
inline const V1Names kGetModelNames("longshort.v1.Models/GetModel");
inline const V1Names kLoadModelNames("longshort.v1.Models/LoadModel");
inline const V1Names kUnloadModelNames("longshort.v1.Models/UnloadModel");
inline const V1Names kListSessionsNames("longshort.v1.Sessions/ListSessions");
inline const V1Names kCloseSessionNames("longshort.v1.Sessions/CloseSession");
inline const V1Names kExportSessionNames("longshort.v1.Sessions/ExportSession");
inline const V1Names kImportSessionNames("longshort.v1.Sessions/ImportSession", "beginning.session_id");

}  // namespace longshort

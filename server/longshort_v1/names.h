// How longshort.v1 calls its RPCs and their fields.
#pragma once

#include <string>

#include "server/calls/call_names.h"

namespace longshort {

// The names of one RPC of longshort.v1.
class V1Names final : public CallNames {
 public:
  // Both are literals.
  explicit constexpr V1Names(const char* rpc, const char* session_id = "session_id")
      : rpc_(rpc), session_id_(session_id) {}

  const char* rpc() const override { return rpc_; }
  const char* streaming_rpc() const override { return "GenerateStream"; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override;
  std::string KindsOf(CallField field) const override;

 private:
  const char* const rpc_;
  const char* const session_id_;  // RPCs name the session in different places
};

inline const V1Names kScoreTextNames("ScoreText", "session.id");
inline const V1Names kScoreTextsNames("ScoreTexts");
inline const V1Names kClassifyImageNames("ClassifyImage");
inline const V1Names kGenerateNames("Generate", "session.id");
inline const V1Names kGenerateStreamNames("GenerateStream", "session.id");
inline const V1Names kTokenizeNames("Tokenize");
inline const V1Names kListModelsNames("ListModels");
inline const V1Names kGetModelNames("GetModel");
inline const V1Names kLoadModelNames("LoadModel");
inline const V1Names kUnloadModelNames("UnloadModel");
inline const V1Names kListSessionsNames("ListSessions");
inline const V1Names kCloseSessionNames("CloseSession");
inline const V1Names kExportSessionNames("ExportSession");
inline const V1Names kImportSessionNames("ImportSession", "beginning.session_id");

}  // namespace longshort

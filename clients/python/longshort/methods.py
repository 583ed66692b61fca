"""The calls of longshort.v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from longshort._proto import inference_pb2, models_pb2, sessions_pb2, types_pb2

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)


@dataclass(frozen=True)
class Method(Generic[Q, A]):
    """A method: its path, and the types of its question and answer."""

    path: str
    question: type[Q]
    answer: type[A]


SCORE_TEXT = Method(
    "/longshort.v1.Inference/ScoreText", inference_pb2.ScoreTextRequest, inference_pb2.ScoreTextResponse
)
SCORE_TEXTS = Method(
    "/longshort.v1.Inference/ScoreTexts", inference_pb2.ScoreTextsRequest, inference_pb2.ScoreTextsResponse
)
CLASSIFY_IMAGE = Method(
    "/longshort.v1.Inference/ClassifyImage", inference_pb2.ClassifyImageRequest, inference_pb2.ClassifyImageResponse
)
EMBED = Method("/longshort.v1.Inference/Embed", inference_pb2.EmbedRequest, inference_pb2.EmbedResponse)
GENERATE = Method("/longshort.v1.Inference/Generate", inference_pb2.GenerateRequest, inference_pb2.GenerateResponse)
GENERATE_STREAM = Method(
    "/longshort.v1.Inference/GenerateStream", inference_pb2.GenerateRequest, inference_pb2.GenerateStreamResponse
)
TOKENIZE = Method("/longshort.v1.Inference/Tokenize", inference_pb2.TokenizeRequest, inference_pb2.TokenizeResponse)
LIST_MODELS = Method("/longshort.v1.Models/ListModels", models_pb2.ListModelsRequest, models_pb2.ListModelsResponse)
GET_MODEL = Method("/longshort.v1.Models/GetModel", models_pb2.GetModelRequest, models_pb2.Model)
LIST_SESSIONS = Method(
    "/longshort.v1.Sessions/ListSessions", sessions_pb2.ListSessionsRequest, sessions_pb2.ListSessionsResponse
)
CLOSE_SESSION = Method(
    "/longshort.v1.Sessions/CloseSession", sessions_pb2.CloseSessionRequest, sessions_pb2.CloseSessionResponse
)
EXPORT_SESSION = Method(
    "/longshort.v1.Sessions/ExportSession", sessions_pb2.ExportSessionRequest, sessions_pb2.SessionPart
)
IMPORT_SESSION = Method(
    "/longshort.v1.Sessions/ImportSession", sessions_pb2.ImportSessionRequest, sessions_pb2.ImportSessionResponse
)


def end_session(model: types_pb2.ModelSelector, session_id: str) -> sessions_pb2.CloseSessionRequest:
    """Returns the question of CLOSE_SESSION."""
    return sessions_pb2.CloseSessionRequest(model=model, session_id=session_id)


def is_keep_alive(answer: object) -> bool:
    """Whether the message of a stream only keeps it alive."""
    return isinstance(answer, inference_pb2.ScoreTextsResponse) and answer.HasField("keep_alive")

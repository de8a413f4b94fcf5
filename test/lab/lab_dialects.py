"""The wire formats of four model APIs: reading a request's tools, writing a call or a text.

Each dialect can write a reply whole or as server-sent events.  Texts and arguments are sent in two
pieces, so that a client that only reads the first event is found out.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import Any, Iterator, Protocol

Json = dict[str, Any]
DEFAULT_MODEL = "lab-1"
TOKENS_IN, TOKENS_OUT = 10, 5


@dataclass(frozen=True)
class Call:
    """The model wants a tool run."""

    tool: str
    arguments: Json


@dataclass(frozen=True)
class Text:
    """The model says something."""

    text: str


@dataclass(frozen=True)
class Reply:
    """A JSON body or, when `events` is set, a stream; `note` goes to the request log."""

    status: int
    body: Json | None
    events: Iterator[bytes] | None
    note: Json


class Dialect(Protocol):
    name: str

    def tools(self, request: Json) -> dict[str, Json]:
        """The function tools that the request offers: name to JSON schema of the arguments."""

    def brings_result(self, request: Json) -> bool:
        """Whether a tool result came after the last thing the model said."""

    def is_stream(self, request: Json, target: str) -> bool: ...

    def whole(self, request: Json, saying: Call | Text) -> Json: ...

    def stream(self, request: Json, saying: Call | Text) -> Iterator[bytes]: ...


def _ident(prefix: str) -> str:
    return prefix + secrets.token_hex(12)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _data(event: Json) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _named(event: Json) -> bytes:
    return b"event: " + event["type"].encode() + b"\n" + _data(event)


def _after_last(items: list[Json], is_model: Any) -> list[Json]:
    """What follows the last item that the model made."""
    for position in range(len(items), 0, -1):
        if is_model(items[position - 1]):
            return items[position:]
    return items


class AnthropicMessages:
    """POST /v1/messages."""

    name = "anthropic-messages"

    def tools(self, request: Json) -> dict[str, Json]:
        return {tool["name"]: tool.get("input_schema") or {} for tool in request.get("tools") or ()}

    def brings_result(self, request: Json) -> bool:
        news = _after_last(request["messages"], lambda item: item["role"] == "assistant")
        blocks = [block for item in news if isinstance(item["content"], list)
                  for block in item["content"]]
        return any(block["type"] == "tool_result" for block in blocks)

    def is_stream(self, request: Json, target: str) -> bool:
        return bool(request.get("stream"))

    def _message(self, request: Json, content: list[Json], stop_reason: str | None) -> Json:
        return {"id": _ident("msg_"), "type": "message", "role": "assistant",
                "model": request.get("model", DEFAULT_MODEL), "content": content,
                "stop_reason": stop_reason, "stop_sequence": None,
                "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}}

    def whole(self, request: Json, saying: Call | Text) -> Json:
        if isinstance(saying, Text):
            return self._message(request, [{"type": "text", "text": saying.text}], "end_turn")
        block = {"type": "tool_use", "id": _ident("toolu_"), "name": saying.tool,
                 "input": saying.arguments}
        return self._message(request, [block], "tool_use")

    def stream(self, request: Json, saying: Call | Text) -> Iterator[bytes]:
        whole = self.whole(request, saying)
        start: Json = dict(whole["content"][0])
        if isinstance(saying, Text):
            start["text"] = ""
            key, kind, text = "text", "text_delta", saying.text
        else:
            start["input"] = {}
            key, kind, text = "partial_json", "input_json_delta", json.dumps(saying.arguments)
        yield _named({"type": "message_start",
                      "message": {**whole, "content": [], "stop_reason": None}})
        yield _named({"type": "content_block_start", "index": 0, "content_block": start})
        for half in _halves(text):
            yield _named({"type": "content_block_delta", "index": 0,
                          "delta": {"type": kind, key: half}})
        yield _named({"type": "content_block_stop", "index": 0})
        yield _named({"type": "message_delta", "usage": {"output_tokens": TOKENS_OUT},
                      "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}})
        yield _named({"type": "message_stop"})


class OpenAiResponses:
    """POST /v1/responses."""

    name = "openai-responses"
    MODEL_ITEMS = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")

    def tools(self, request: Json) -> dict[str, Json]:
        return {tool["name"]: tool.get("parameters") or {} for tool in request.get("tools") or ()
                if tool["type"] == "function"}

    def brings_result(self, request: Json) -> bool:
        items = request["input"]
        if isinstance(items, str):
            return False
        news = _after_last(items, lambda item: item.get("type") in self.MODEL_ITEMS
                           or item.get("role") == "assistant")
        return any(item.get("type", "").endswith("_output") for item in news)

    def is_stream(self, request: Json, target: str) -> bool:
        return bool(request.get("stream"))

    def whole(self, request: Json, saying: Call | Text) -> Json:
        item: Json
        if isinstance(saying, Text):
            part = {"type": "output_text", "text": saying.text, "annotations": []}
            item = {"type": "message", "id": _ident("msg_"), "role": "assistant",
                    "status": "completed", "content": [part]}
        else:
            item = {"type": "function_call", "id": _ident("fc_"), "call_id": _ident("call_"),
                    "name": saying.tool, "arguments": json.dumps(saying.arguments),
                    "status": "completed"}
        usage = {"input_tokens": TOKENS_IN, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens": TOKENS_OUT, "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": TOKENS_IN + TOKENS_OUT}
        return {"id": _ident("resp_"), "object": "response", "created_at": int(time.time()),
                "status": "completed", "model": request.get("model", DEFAULT_MODEL),
                "output": [item], "usage": usage}

    def stream(self, request: Json, saying: Call | Text) -> Iterator[bytes]:
        whole = self.whole(request, saying)
        item = whole["output"][0]
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        opened: Json = {**item, "status": "in_progress"}
        if isinstance(saying, Text):
            opened["content"], inner = [], self._text_events(item)
        else:
            opened["arguments"], inner = "", self._call_events(item)
        events: list[Json] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": opened},
            *inner,
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        for number, event in enumerate(events):
            yield _named({**event, "sequence_number": number})

    def _text_events(self, item: Json) -> list[Json]:
        part = item["content"][0]
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        deltas = [{"type": "response.output_text.delta", **place, "delta": half}
                  for half in _halves(part["text"])]
        return [{"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
                *deltas,
                {"type": "response.output_text.done", **place, "text": part["text"]},
                {"type": "response.content_part.done", **place, "part": part}]

    def _call_events(self, item: Json) -> list[Json]:
        place = {"item_id": item["id"], "output_index": 0}
        kind = "response.function_call_arguments"
        deltas = [{"type": kind + ".delta", **place, "delta": half}
                  for half in _halves(item["arguments"])]
        return [*deltas, {"type": kind + ".done", **place, "arguments": item["arguments"]}]


class OpenAiChat:
    """POST /v1/chat/completions."""

    name = "openai-chat"

    def tools(self, request: Json) -> dict[str, Json]:
        functions = [tool["function"] for tool in request.get("tools") or ()
                     if tool["type"] == "function"]
        return {function["name"]: function.get("parameters") or {} for function in functions}

    def brings_result(self, request: Json) -> bool:
        news = _after_last(request["messages"], lambda item: item["role"] == "assistant")
        return any(item["role"] == "tool" for item in news)

    def is_stream(self, request: Json, target: str) -> bool:
        return bool(request.get("stream"))

    def _usage(self) -> Json:
        return {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT,
                "total_tokens": TOKENS_IN + TOKENS_OUT}

    def whole(self, request: Json, saying: Call | Text) -> Json:
        message: Json
        if isinstance(saying, Text):
            message, reason = {"role": "assistant", "content": saying.text}, "stop"
        else:
            function = {"name": saying.tool, "arguments": json.dumps(saying.arguments)}
            call = {"id": _ident("call_"), "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            reason = "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {"id": _ident("chatcmpl-"), "object": "chat.completion",
                "created": int(time.time()), "model": request.get("model", DEFAULT_MODEL),
                "choices": [choice], "usage": self._usage()}

    def stream(self, request: Json, saying: Call | Text) -> Iterator[bytes]:
        whole = self.whole(request, saying)
        frame = {**whole, "object": "chat.completion.chunk", "usage": None}
        reason = whole["choices"][0]["finish_reason"]
        for delta in self._deltas(whole["choices"][0]["message"]):
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield _data({**frame, "choices": [choice]})
        last = {"index": 0, "delta": {}, "finish_reason": reason}
        yield _data({**frame, "choices": [last]})
        if (request.get("stream_options") or {}).get("include_usage"):
            yield _data({**frame, "choices": [], "usage": self._usage()})
        yield b"data: [DONE]\n\n"

    def _deltas(self, message: Json) -> list[Json]:
        if "tool_calls" not in message:
            first, second = _halves(message["content"])
            return [{"role": "assistant", "content": first}, {"content": second}]
        call = message["tool_calls"][0]
        first, second = _halves(call["function"]["arguments"])
        opened = {**call, "index": 0, "function": {**call["function"], "arguments": first}}
        return [{"role": "assistant", "content": None, "tool_calls": [opened]},
                {"tool_calls": [{"index": 0, "function": {"arguments": second}}]}]


class GeminiGenerate:
    """POST /v1beta/models/NAME:generateContent and :streamGenerateContent."""

    name = "gemini"

    def tools(self, request: Json) -> dict[str, Json]:
        declared = [one for tool in request.get("tools") or ()
                    for one in tool.get("functionDeclarations") or ()]
        return {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") or {}
                for one in declared}

    def brings_result(self, request: Json) -> bool:
        news = _after_last(request["contents"], lambda item: item.get("role") == "model")
        return any("functionResponse" in part for item in news for part in item["parts"])

    def is_stream(self, request: Json, target: str) -> bool:
        return ":streamGenerateContent" in target

    def whole(self, request: Json, saying: Call | Text) -> Json:
        part: Json
        if isinstance(saying, Text):
            part = {"text": saying.text}
        else:
            part = {"functionCall": {"name": saying.tool, "args": saying.arguments}}
        return self._frame([part], "STOP")

    def stream(self, request: Json, saying: Call | Text) -> Iterator[bytes]:
        if isinstance(saying, Text):
            first, second = _halves(saying.text)
            yield _data(self._frame([{"text": first}], None))
            yield _data(self._frame([{"text": second}], "STOP"))
        else:
            yield _data(self.whole(request, saying))

    def _frame(self, parts: list[Json], reason: str | None) -> Json:
        candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        return {"candidates": [candidate], "modelVersion": DEFAULT_MODEL,
                "usageMetadata": {"promptTokenCount": TOKENS_IN,
                                  "candidatesTokenCount": TOKENS_OUT,
                                  "totalTokenCount": TOKENS_IN + TOKENS_OUT}}

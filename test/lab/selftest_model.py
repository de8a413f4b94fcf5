"""The self-test's checks of the stand-in model, in each API dialect (run on the host side)."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Callable

import lab_model
from selftest_check import Check, events, expect, is_equal

Json = dict[str, Any]
COMMAND = "printf 'a \"quoted\" word' > out.txt"
SCHEMA = {"type": "object", "required": ["command", "description", "background"],
          "properties": {"command": {"type": "string"}, "description": {"type": "string"},
                         "background": {"type": "boolean"}}}
ARGUMENTS = {"command": COMMAND, "description": lab_model.ARGUMENT_NOTE, "background": False}


@dataclass(frozen=True)
class Sample:
    """One dialect as a client speaks it.  The readers give ("call", arguments) or ("text", text)
    from a whole reply and from a list of events."""

    host: str
    path: str
    stream_path: str
    first: Json
    second: Json  # the turn that brings the tool's result
    read_whole: Callable[[Json], tuple[str, Any]]
    read_stream: Callable[[list[Json]], tuple[str, Any]]


def read_anthropic(reply: Json) -> tuple[str, Any]:
    block = reply["content"][0]
    if block["type"] == "tool_use":
        is_equal(reply["stop_reason"], "tool_use", "stop_reason")
        return "call", block["input"]
    return "text", block["text"]


def read_anthropic_stream(stream: list[Json]) -> tuple[str, Any]:
    is_equal((stream[0]["type"], stream[-1]["type"]), ("message_start", "message_stop"), "frame")
    deltas = [one["delta"] for one in stream if one["type"] == "content_block_delta"]
    if deltas[0]["type"] == "input_json_delta":
        return "call", json.loads("".join(one["partial_json"] for one in deltas))
    return "text", "".join(one["text"] for one in deltas)


def read_responses(reply: Json) -> tuple[str, Any]:
    item = reply["output"][0]
    if item["type"] == "function_call":
        return "call", json.loads(item["arguments"])
    return "text", item["content"][0]["text"]


def read_responses_stream(stream: list[Json]) -> tuple[str, Any]:
    is_equal([one["sequence_number"] for one in stream], list(range(len(stream))), "sequence")
    deltas = "".join(one["delta"] for one in stream if one["type"].endswith(".delta"))
    kind, said = read_responses(stream[-1]["response"])
    is_equal(json.loads(deltas) if kind == "call" else deltas, said, "deltas and whole")
    return kind, said


def read_chat(reply: Json) -> tuple[str, Any]:
    message = reply["choices"][0]["message"]
    if message.get("tool_calls"):
        return "call", json.loads(message["tool_calls"][0]["function"]["arguments"])
    return "text", message["content"]


def read_chat_stream(stream: list[Json]) -> tuple[str, Any]:
    deltas = [one["choices"][0]["delta"] for one in stream]
    calls = [one["tool_calls"][0]["function"] for one in deltas if "tool_calls" in one]
    if calls:
        return "call", json.loads("".join(one["arguments"] for one in calls))
    return "text", "".join(one.get("content", "") for one in deltas)


def read_gemini(reply: Json) -> tuple[str, Any]:
    part = reply["candidates"][0]["content"]["parts"][0]
    return ("call", part["functionCall"]["args"]) if "functionCall" in part else ("text",
                                                                                part["text"])


def read_gemini_stream(stream: list[Json]) -> tuple[str, Any]:
    is_equal(stream[-1]["candidates"][0]["finishReason"], "STOP", "finishReason")
    said = [read_gemini(one) for one in stream]
    return said[0] if said[0][0] == "call" else ("text", "".join(one[1] for one in said))


ASK = {"role": "user", "content": "do it"}
ANTHROPIC_TOOLS = [{"name": "Bash", "input_schema": SCHEMA}]
RESPONSES_TOOLS = [{"type": "function", "name": "shell", "parameters": SCHEMA}]
CHAT_TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
GEMINI_TOOLS = [{"functionDeclarations": [{"name": "run_shell_command", "parameters": SCHEMA}]}]
GEMINI_ASK = {"role": "user", "parts": [{"text": "do it"}]}
SAMPLES = {
    "anthropic-messages": Sample(
        "api.anthropic.com", "/v1/messages", "/v1/messages?beta=true",
        {"model": "m", "messages": [ASK], "tools": ANTHROPIC_TOOLS},
        {"model": "m", "tools": ANTHROPIC_TOOLS, "messages": [
            ASK, {"role": "assistant", "content": [{"type": "tool_use"}]},
            {"role": "user", "content": [{"type": "tool_result"}, {"type": "text"}]}]},
        read_anthropic, read_anthropic_stream),
    "openai-responses": Sample(
        "api.openai.com", "/v1/responses", "/v1/responses",
        {"model": "m", "input": "do it", "tools": RESPONSES_TOOLS},
        {"model": "m", "tools": RESPONSES_TOOLS, "input": [
            {"type": "message", **ASK}, {"type": "function_call"},
            {"type": "function_call_output"}]},
        read_responses, read_responses_stream),
    "openai-chat": Sample(
        "api.openai.com", "/v1/chat/completions", "/v1/chat/completions",
        {"model": "m", "messages": [ASK], "tools": CHAT_TOOLS},
        {"model": "m", "tools": CHAT_TOOLS, "messages": [
            ASK, {"role": "assistant"}, {"role": "tool", "content": ""}]},
        read_chat, read_chat_stream),
    "gemini": Sample(
        "generativelanguage.googleapis.com", "/v1beta/models/m:generateContent",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [GEMINI_ASK], "tools": GEMINI_TOOLS},
        {"tools": GEMINI_TOOLS, "contents": [
            GEMINI_ASK, {"role": "model", "parts": []},
            {"role": "user", "parts": [{"functionResponse": {}}]}]},
        read_gemini, read_gemini_stream),
}


def post(host: str, path: str, body: bytes) -> tuple[int, str]:
    request = urllib.request.Request(f"http://{host}{path}", body, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def say(sample: Sample, request: Json, is_stream: bool) -> tuple[str, Any]:
    path = sample.stream_path if is_stream else sample.path
    if "Generate" not in path and is_stream:
        request = {**request, "stream": True}
    status, text = post(sample.host, path, json.dumps(request).encode())
    is_equal(status, 200, text)
    if not is_stream:
        return sample.read_whole(json.loads(text))
    lines = [line[len("data: "):] for line in text.splitlines() if line.startswith("data: ")]
    return sample.read_stream([json.loads(line) for line in lines if line != "[DONE]"])


def set_command(text: str) -> None:
    with open(os.environ["LAB_MODEL_COMMAND"], "w", encoding="utf-8") as file:
        file.write(text + "\n")


def check_dialect(name: str) -> None:
    sample = SAMPLES[name]
    set_command(COMMAND)
    for is_stream in (False, True):
        is_equal(say(sample, sample.first, is_stream), ("call", ARGUMENTS), "first turn")
        is_equal(say(sample, sample.second, is_stream), ("text", "All done."), "second turn")
        without: Json = {**sample.first, "tools": []}
        is_equal(say(sample, without, is_stream), ("text", "All done."), "no tools")
    notes = [one["model"] for one in events("LAB_REQUESTS", event="request")
             if one.get("model", {}).get("dialect") == name]
    is_equal([note["said"] for note in notes], ["call", "text", "text"] * 2, "log")
    status, _ = post(sample.host, sample.path, b"{not json")
    is_equal(status, 400, "malformed")


def the_command_is_read_at_each_turn() -> None:
    for command in ("true", "false"):
        set_command(command)
        _, arguments = say(SAMPLES["openai-chat"], SAMPLES["openai-chat"].first, False)
        is_equal(arguments["command"], command, "command")


def tools_are_called_as_their_schema_wants() -> None:
    set_command("id")
    schemas = {"exec_command": ({"cmd": {"type": "string"}}, {"cmd": "id"}),
               "shell": ({"command": {"type": "array"}}, {"command": ["bash", "-c", "id"]})}
    for tool, (properties, wanted) in schemas.items():
        offered = [{"type": "function", "name": tool, "parameters": {"properties": properties}}]
        request = {**SAMPLES["openai-responses"].first, "tools": offered}
        is_equal(say(SAMPLES["openai-responses"], request, False), ("call", wanted), tool)


def other_hosts_are_no_model() -> None:
    status, text = post("allowed.cell-lab.net", "/v1/messages", b"{}")
    is_equal((status, text), (200, "2\n"), "an ordinary site measures the body")


def _named(name: str) -> Check:
    def check() -> None:
        check_dialect(name)

    check.__name__ = f"{name}_is_spoken_whole_and_streamed"
    return check


CHECKS = (*(_named(name) for name in SAMPLES), the_command_is_read_at_each_turn,
          tools_are_called_as_their_schema_wants, other_hosts_are_no_model)
expect(len(SAMPLES) == len(lab_model.ROUTES), "a dialect without a sample")

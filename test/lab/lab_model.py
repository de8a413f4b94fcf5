"""The stand-in model: what it says, in whichever API dialect it is asked.

It has one habit.  A turn that brings no tool result is answered with a call of the shell tool that
the request offers, running the command in the model-command file; a turn that brings a result, or
offers no shell tool, is answered with TEXT.  The file is read at each turn: a test changes it
while the lab runs.
"""

from __future__ import annotations

import json
import re
from typing import Any

import lab_dialects
from lab_dialects import Call, Dialect, Reply, Text

TEXT = "All done."
# By preference: an agent that offers several of these runs commands with the first.
SHELL_TOOLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command",
               "execute_command", "run_terminal_cmd", "run_commands", "terminal")
COMMAND_PROPERTIES = ("command", "cmd", "commands", "script")
ARGUMENT_NOTE = "run the requested command"
ARGUMENT_BY_TYPE: dict[str, Any] = {
    "string": ARGUMENT_NOTE, "boolean": False, "integer": 0, "number": 0, "array": [], "object": {},
}
COUNT = {"input_tokens": 10, "totalTokens": 10}
MODELS = {"object": "list", "data": [{"id": "lab-1", "object": "model", "type": "model"}],
          "models": [{"name": "models/lab-1"}]}

ROUTES: tuple[tuple[str, re.Pattern[str], Dialect], ...] = (
    ("POST", re.compile(r"/v1/messages"), lab_dialects.AnthropicMessages()),
    ("POST", re.compile(r"(/v1)?/responses"), lab_dialects.OpenAiResponses()),
    ("POST", re.compile(r"(/v1)?/chat/completions"), lab_dialects.OpenAiChat()),
    ("POST", re.compile(r"/v1(alpha|beta)?/models/[^/]+:(stream)?[gG]enerateContent"),
     lab_dialects.GeminiGenerate()),
)
FIXED: tuple[tuple[str, re.Pattern[str], dict[str, Any]], ...] = (
    ("POST", re.compile(r"/v1/messages/count_tokens"), COUNT),
    ("POST", re.compile(r"/v1(alpha|beta)?/models/[^/]+:countTokens"), COUNT),
    ("GET", re.compile(r"/v1(alpha|beta)?/models"), MODELS),
)


def answer(method: str, target: str, body: bytes, command_file: str) -> Reply | None:
    """The model's reply to a request, or None if the path is none of a model API's."""
    path = target.partition("?")[0]
    for known_method, pattern, fixed in FIXED:
        if method == known_method and pattern.fullmatch(path):
            return Reply(200, fixed, None, {"said": "fixed"})
    for known_method, pattern, dialect in ROUTES:
        if method == known_method and pattern.fullmatch(path):
            return _take_turn(dialect, target, body, command_file)
    return None


def _take_turn(dialect: Dialect, target: str, body: bytes, command_file: str) -> Reply:
    try:
        request = json.loads(body)
        tools = dialect.tools(request)
        saying = _decide(tools, dialect.brings_result(request), command_file)
        is_stream = dialect.is_stream(request, target)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        error = {"error": {"type": "invalid_request_error", "message": repr(problem)}}
        return Reply(400, error, None, {"said": "error", "problem": repr(problem)})
    note = {"dialect": dialect.name, "model": request.get("model"), "stream": is_stream,
            "tools": sorted(tools), "said": "call" if isinstance(saying, Call) else "text"}
    if is_stream:
        return Reply(200, None, dialect.stream(request, saying), note)
    return Reply(200, dialect.whole(request, saying), None, note)


def _decide(tools: dict[str, Any], brings_result: bool, command_file: str) -> Call | Text:
    tool = next((name for name in SHELL_TOOLS if name in tools), None)
    if tool is None or brings_result:
        return Text(TEXT)
    with open(command_file, encoding="utf-8") as file:
        return Call(tool, _arguments(tools[tool], file.read().strip()))


def _arguments(schema: dict[str, Any], command: str) -> dict[str, Any]:
    """Fill what the tool's JSON schema requires, and the command whatever it requires."""
    properties = schema.get("properties") or {"command": {"type": "string"}}
    arguments = {name: _filler(properties.get(name, {})) for name in schema.get("required") or ()}
    name = next((known for known in COMMAND_PROPERTIES if known in properties), "command")
    arguments[name] = _command_value(name, properties.get(name, {}), command)
    return arguments


def _command_value(name: str, schema: dict[str, Any], command: str) -> str | list[str]:
    if _type_of(schema) != "array":
        return command
    return [command] if name == "commands" else ["bash", "-c", command]


def _filler(schema: dict[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return ARGUMENT_BY_TYPE.get(_type_of(schema), ARGUMENT_NOTE)


def _type_of(schema: dict[str, Any]) -> str:
    """The JSON type, lower case (Gemini writes STRING); of several the first that is not null."""
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    return str(kind).lower()

#!/usr/bin/python3 -B
"""What our HTTP parsers accept, a second parser must read alike.

    wire_differential.py [WIRE_DUMP]

Generates streams of requests and responses, many of them spoiled the way request smuggling spoils
them, and compares what wire-dump read with Python's http.server and http.client and with node's
parser (where there is a node). That the other parser accepts less is no fault; that it reads
another message, or one more while ours waits, is. What the gate would pass on must be read alike to
the last message. Prints TAP.
"""

import email.errors
import http.client
import http.server
import io
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import warnings

SEED = 9112
STREAMS = 1500
MUST_COMPARE = 400  # messages of each kind; fewer would mean that the generator has gone blind
TREE = pathlib.Path(__file__).parents[2]
BUILD_DIR = pathlib.Path(os.environ.get("WARDEN_BUILD_DIR", TREE / "build"))
NODE_READER = pathlib.Path(__file__).with_name("wire_differential_reader.js")

STARTS = (
    "GET /", "GET /?", "HEAD /", "POST /", "PUT /x", "POST /a?b=c", "PUT /%00/..",
    "GET http://pypi.org/simple/", "POST http://a:8080?q", "OPTIONS *", "DELETE /a|b\"{}",
    "HEAD http://[::1]/", "PATCH //evil.com/x", "GET pypi.org:443", "GET *", "OPTIONS http://a",
)
FIELDS = (
    "Accept: */*", "X-Empty:", "x-tabs:\t a \t b \t", "X-Latin: \u00e9\u0085\u00ff",
    "Cookie: a=b; c=d", "Cookie: e", "Connection: keep-alive", "Keep-Alive: 5",
    "Connection: X-Hop, TE", "X-Hop: 1", "Expect: 100-continue", "TE: trailers", "Trailer: X",
    "!#$%&'*+-.^_`|~: token", "A:b:c",
)
SPOILING_FIELDS = (
    "Content-Length: 5", "Content-Length: 0", "Content-Length: +5", "Content-Length: 5, 5",
    "Content-Length: 05", "Content-Length : 5", "Transfer-Encoding: chunked",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding:\x0bchunked", "Transfer-Encoding : chunked", "Host: b", "Host : b",
    " folded: a", "\tfolded", ": empty", "no colon", "Upgrade: h2c", "X: a\rb", "X: a\nb",
    "X: a\0b", "Connection: content-length", "Connection: close",
)
CODINGS = ("Transfer-Encoding: chunked", "transfer-encoding:Chunked")
STATUSES = (
    "200 OK", "200", "404 Not Found", "100 Continue", "103 Early Hints", "204 None",
    "304 Not Modified", "500 ", "101 Switching Protocols", "200 \u00e9",
)
PADDING = ("",) * 9 + (" \t",)  # not in responses: http.client does not know "chunked "
SPOILING_BYTES = b"\0\t\n\r\x0b\x0c :;,0a\x7f\x85\xa0\xff"


def chunked(rng, data):
    """Encode data in chunks with the liberties that the format has."""
    out = b""
    while data:
        n = rng.randint(1, len(data))
        size = rng.choice(("%x", "%X", "00%x")) % n
        extension = rng.choice(("",) * 20 + (";a", ";a=b", ";a=\"b c\""))
        out += f"{size}{extension}\r\n".encode() + data[:n] + b"\r\n"
        data = data[n:]
    return out + rng.choice((b"0\r\n\r\n", b"000;x\r\n\r\n", b"0\r\nDigest: a\r\nX:\r\n\r\n"))


def framed(rng):
    """(field lines, body bytes)."""
    data = bytes(rng.choices(b"ab\r\n0;GET /", k=rng.randint(0, 40)))
    kind = rng.randint(0, 2)
    if kind == 0:
        return [], b""
    if kind == 1:
        return [f"Content-Length: {len(data)}"], data
    return [rng.choice(CODINGS)], chunked(rng, data)


def message(rng, start, must_have, padding):
    fields, body = ([], b"") if start.startswith("CONNECT") else framed(rng)
    fields = [field + rng.choice(padding) for field in fields]
    fields += must_have + rng.sample(FIELDS, rng.randint(0, 4))
    if rng.random() < 0.3:
        fields.append(rng.choice(SPOILING_FIELDS))
    rng.shuffle(fields)
    return "\r\n".join([start, *fields, "", ""]).encode("latin-1") + body


def request(rng):
    start = "CONNECT pypi.org:443" if rng.random() < 0.05 else rng.choice(STARTS)
    version = "HTTP/1.0" if rng.random() < 0.1 else "HTTP/1.1"
    return message(rng, f"{start} {version}", [rng.choice(("Host: a", "host:a.com:80 "))],
                   PADDING)


def response(rng):
    version = "HTTP/1.0" if rng.random() < 0.1 else "HTTP/1.1"
    return message(rng, f"{version} {rng.choice(STATUSES)}", [], ("",))


def spoil(rng, stream):
    at = rng.randrange(len(stream))
    kind = rng.randint(0, 4)
    if kind == 0:
        return stream[:at] + bytes([rng.choice(SPOILING_BYTES)]) + stream[at:]
    if kind == 1:
        return stream[:at] + stream[at + 1:]
    if kind == 2:
        return stream[:at] + bytes([rng.choice(SPOILING_BYTES)]) + stream[at + 1:]
    if kind == 3:
        return stream[:at]
    return stream[:at] + stream[at:].replace(b"\r\n", rng.choice((b"\n", b"\r", b"\r\r\n")), 1)


def streams(rng, make):
    out = []
    for _ in range(STREAMS):
        stream = b"".join(make(rng) for _ in range(rng.randint(1, 3)))
        out.append(spoil(rng, stream) if rng.random() < 0.3 else stream)
    return out


class Stream(io.BytesIO):
    """Bytes that the readers below take for a connection and cannot close."""

    def makefile(self, _mode):
        return self

    def check_empty_line(self):
        """Python takes the end of a stream for the end of a head or of trailers; no server does."""
        if not self.getvalue()[:self.tell()].endswith((b"\n\r\n", b"\n\n")):
            raise EOFError

    def close(self):
        pass


class Server(http.server.BaseHTTPRequestHandler):
    """The parsing half of Python's server, without a connection."""

    def __init__(self, stream):  # the base class would serve at once
        self.rfile = stream
        self.wfile = io.BytesIO()
        self.client_address = ("", 0)

    def send_error(self, code, message=None, explain=None):
        pass

    def log_message(self, format, *args):
        pass

    def read(self):
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            return None
        self.rfile.check_empty_line()
        body = read_body(self.rfile, self.headers)
        return {"start": [self.command, self.path], "fields": plain(self.headers), "body": body}


def plain(headers):
    return [[name, value.strip(" \t")] for name, value in headers.items()]


def read_body(stream, headers):
    if headers.get("Transfer-Encoding", "").strip().lower() == "chunked":
        decoder = http.client.HTTPResponse(stream)
        decoder.chunked, decoder.chunk_left, decoder.length = True, None, None
        body = decoder.read().hex()
        stream.check_empty_line()
        return body
    length = int(headers.get("Content-Length", "0"))
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data.hex()


def read_response(stream):
    reader = http.client.HTTPResponse(stream, method="GET")
    reader.begin()
    stream.check_empty_line()
    fields = plain(reader.headers)
    is_chunked, body = reader.chunked, reader.read().hex()
    if is_chunked:
        stream.check_empty_line()
    return {"start": [str(reader.status), reader.reason], "fields": fields, "body": body}


def read_all(read_one, stream):
    """All messages that Python reads from the stream, up to its first complaint."""
    messages = []
    try:
        while stream.tell() < len(stream.getbuffer()):
            found = read_one()
            if found is None:
                break
            messages.append(found)
    except (http.client.HTTPException, ValueError, EOFError, email.errors.MessageError):
        pass
    return messages


def read_with_python(kind, cases):
    results = []
    for case in cases:
        stream = Stream(case)
        reader = Server(stream).read if kind == "q" else lambda s=stream: read_response(s)
        results.append(read_all(reader, stream))
    return results


def read_with_node(cases):
    run = subprocess.run([shutil.which("node"), str(NODE_READER)], check=True, capture_output=True,
                         input=json.dumps([case.hex() for case in cases]).encode())
    return [[m for m in messages if m["complete"]] for messages in json.loads(run.stdout)]


def unhex(text):
    return bytes.fromhex(text).decode("latin-1")


def decoded(dumped):
    """The content of a body as bytes, by the plain rule: everything of it is known to be good."""
    raw = bytes.fromhex(dumped["raw"])
    if dumped["body"] != "chunked":
        return raw
    out = b""
    while True:
        line, _, raw = raw.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if size == 0:
            return out
        out, raw = out + raw[:size], raw[size + 2:]


def read_with_ours(program, kind, cases):
    given = b"".join(kind.encode() + struct.pack(">I", len(case)) + case for case in cases)
    run = subprocess.run([program], check=True, capture_output=True, input=given)
    results = []
    for line in run.stdout.splitlines():
        answer = json.loads(line)
        for m in answer["messages"]:
            m["start"] = [unhex(part) for part in m["start"]]
            m["fields"] = [[unhex(name), unhex(value)] for name, value in m["fields"]]
            content = decoded(m)
            assert m["body"] in ("tunnel", "close") or m["content"] == len(content)
            m["content"] = content.hex()
        results.append(answer)
    assert len(results) == len(cases)
    return results


def is_alike(ours, theirs):
    if ours["start"][0] != theirs["start"][0] or ours["fields"] != theirs["fields"]:
        return False
    # http.server makes "//x" of a target "/x", so that no redirect can lead away (since 3.11).
    if ours["start"][1].strip() != theirs["start"][1] and not ours["start"][1].startswith("//"):
        return False
    return ours["body"] == "tunnel" or ours["content"] == theirs["body"]


def passed_on(answers):
    """(what the gate would send, what it means by it) for each stream that has whole messages."""
    for answer in answers:
        sent, meant = b"", []
        for m in answer["messages"]:
            if m["body"] in ("tunnel", "close"):
                break
            sent += bytes.fromhex(m["written"] + m["raw"])
            meant.append([m["start"][0], m["content"]])
        if meant:
            yield sent, meant


def report_passed_on(number, name, answers, read, is_skipped=lambda m: False):
    """Who reads behind us finds the same messages; one that is stricter may stop, but rarely."""
    sent, meant = zip(*passed_on(answers))
    count = 0
    for stream, expected, messages in zip(sent, meant, read(list(sent))):
        expected = [m for m in expected if not is_skipped(m)]
        found = [[m["start"][0], m["body"]] for m in messages]
        count += len(found)
        if found != expected[:len(found)]:
            print(f"not ok {number} - {name}\n#  stream {stream!r}")
            print(f"#  meant {expected}\n#  found {found}")
            return False
    is_enough = count >= 0.95 * sum(len([m for m in e if not is_skipped(m)]) for e in meant)
    print(f"{'ok' if is_enough else 'not ok'} {number} - {name}: {count} messages")
    return is_enough


def as_http_client(answer):
    """Leave out what http.client passes over (100) or reads wrongly (a 304 has no body, ever)."""
    messages = [m for m in answer["messages"] if m["start"][0] != "100"]
    for i, m in enumerate(messages):
        names = [name.lower() for name, _ in m["fields"]]
        if m["start"][0] == "304" and "transfer-encoding" in names:
            return {"messages": messages[:i], "end": "304"}
    return {"messages": messages, "end": answer["end"]}


def compare(ours, theirs):
    """(messages compared, what is different or None) for one stream."""
    mine = ours["messages"]
    for i, (a, b) in enumerate(zip(mine, theirs)):
        if not is_alike(a, b):
            return i, f"ours {a}\n#  theirs {b}"
    # Behind a flaw the connection is closed, behind a switch of protocols there is no HTTP.
    is_open = ours["end"] == "more" and not (mine and mine[-1]["body"] == "tunnel")
    if is_open and len(theirs) > len(mine):
        return len(mine), f"one more was read: {theirs[len(mine)]}"
    return min(len(mine), len(theirs)), None


def is_continue(meant):
    return meant[0] == "100"  # http.client passes over it


def report(number, name, cases, ours, theirs):
    """Print one TAP line; True if all streams were read alike and enough of them were."""
    count = 0
    for case, mine, other in zip(cases, ours, theirs):
        compared, difference = compare(mine, other)
        count += compared
        if difference is not None:
            print(f"not ok {number} - {name}\n#  stream {case!r}\n#  {difference}")
            return False
    is_enough = count >= MUST_COMPARE
    print(f"{'ok' if is_enough else 'not ok'} {number} - {name}: {count} messages read alike")
    return is_enough


def control(number, ours, theirs):
    """Differences that smuggling makes are seen by the comparison at all."""
    i = next(i for i, answer in enumerate(ours) if answer["messages"] and theirs[i]
             and answer["messages"][0]["body"] == "length" and answer["end"] == "more")
    longer = {**theirs[i][0], "body": theirs[i][0]["body"] + "00"}
    renamed = {**theirs[i][0], "fields": [["Host", "evil"]]}
    seen = (compare(ours[i], [longer])[1] is not None and compare(ours[i], [renamed])[1] is not None
            and compare(ours[i], theirs[i] + theirs[i] * 3)[1] is not None)
    print(f"{'ok' if seen else 'not ok'} {number} - other bodies, fields and counts are seen")
    return seen


def main():
    warnings.simplefilter("ignore")
    program = sys.argv[1] if len(sys.argv) > 1 else BUILD_DIR / "test/fuzz/wire-dump"
    rng = random.Random(SEED)
    requests, responses = streams(rng, request), streams(rng, response)
    our_requests = read_with_ours(program, "q", requests)
    our_responses = read_with_ours(program, "s", responses)
    python_requests = read_with_python("q", requests)
    print("1..7")
    passed = [
        control(1, our_requests, python_requests),
        report(2, "requests as python reads them", requests, our_requests, python_requests),
        report_passed_on(3, "requests passed on, as python reads them", our_requests,
                         lambda sent: read_with_python("q", sent)),
        report(4, "responses as python reads them", responses, map(as_http_client, our_responses),
               read_with_python("s", responses)),
        report_passed_on(5, "responses passed on, as python reads them", our_responses,
                         lambda sent: read_with_python("s", sent), is_skipped=is_continue),
    ]
    if shutil.which("node") is None:
        print("ok 6 - requests as node reads them # SKIP there is no node")
        print("ok 7 - requests passed on, as node reads them # SKIP there is no node")
    else:
        passed.append(report(6, "requests as node reads them", requests, our_requests,
                             read_with_node(requests)))
        passed.append(report_passed_on(7, "requests passed on, as node reads them", our_requests,
                                       read_with_node))
    sys.exit(0 if all(passed) else 1)


main()

"""What the tests of gate say inside the cell, byte by byte."""

import os
import socket
import ssl
import struct

PROXY = ("127.0.0.1", 3128)
TIMEOUT_S = 25
A, PTR, AAAA, TXT, HTTPS = 1, 12, 28, 16, 65


def dial(address=PROXY, first=b""):
    s = socket.create_connection(address, TIMEOUT_S)
    s.sendall(first)
    return s


def read_head(s):
    """The bytes of one HTTP head; less if the connection ended before."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = s.recv(1)
        if not byte:
            break
        data += byte
    return data


def read_all(s):
    data = b""
    while True:
        piece = s.recv(1 << 16)
        if not piece:
            return data
        data += piece


def read_exactly(s, size):
    data = b""
    while len(data) < size:
        piece = s.recv(size - len(data))
        if not piece:
            break
        data += piece
    return data


def read_response(s):
    """(status, head, body) of a response with a length or chunks."""
    head = read_head(s)
    status = int(head.split()[1]) if head else 0
    fields = head.lower()
    if b"content-length:" in fields:
        return status, head, read_exactly(s, int(fields.split(b"content-length:")[1].split()[0]))
    if b"transfer-encoding: chunked" in fields:
        body = b""
        while True:
            size = int(read_line(s), 16)
            body += read_exactly(s, size)
            read_line(s)
            if size == 0:
                return status, head, body
    return status, head, b""


def read_line(s):
    line = b""
    while not line.endswith(b"\r\n"):
        byte = s.recv(1)
        if not byte:
            raise EOFError(line)
        line += byte
    return line[:-2]


def connect(host, first=b""):
    """CONNECT by the proxy: (socket, status, head)."""
    request = f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    s = dial(first=request + first)
    head = read_head(s)
    return s, int(head.split()[1]) if head else 0, head


def get(s, url, host="ignored.example", extra=b""):
    s.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\n".encode() + extra + b"\r\n")
    return read_response(s)


def tls(s, name):
    context = ssl.create_default_context(cafile=os.environ["LAB_CA"])
    return context.wrap_socket(s, server_hostname=name)


def is_reset(s):
    """Whether the connection ends with a reset and nothing before it."""
    try:
        return s.recv(1) == b"" and False
    except ConnectionResetError:
        return True


def is_refused(address):
    """Whether a connection there is reset, as soon as it is made or before."""
    try:
        return is_reset(dial(address))
    except ConnectionResetError:
        return True


def socks(name, port):
    """SOCKS5 by name: (socket, reply code)."""
    s = dial(first=b"\5\1\0")
    assert read_exactly(s, 2) == b"\5\0"
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name.encode() + struct.pack("!H", port))
    reply = read_exactly(s, 10)
    return s, reply[1] if len(reply) == 10 else -1


def dns_query(name, kind=A, has_edns=True, ident=0x1234):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    opt = b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0) if has_edns else b""
    head = struct.pack("!6H", ident, 0x0100, 1, 0, 0, 1 if has_edns else 0)
    return head + labels + b"\0" + struct.pack("!HH", kind, 1) + opt


def ask_udp(message, timeout_s=5):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(timeout_s)
        s.connect(("127.0.0.1", 53))
        s.send(message)
        return s.recv(4096)


def rcode(answer):
    return answer[3] & 15


def answers(answer):
    return struct.unpack_from("!H", answer, 6)[0]


def address_of(name):
    """The synthetic address of a granted name."""
    answer = ask_udp(dns_query(name, has_edns=False))
    assert rcode(answer) == 0 and answers(answer) == 1, answer
    return socket.inet_ntoa(answer[-4:])

// Reads streams of requests with node's HTTP parser: a JSON list of hexadecimal strings comes in, a
// JSON list of lists of messages goes out. Nothing is answered, so that nothing ends a stream early.
"use strict";

const http = require("http");
const { Duplex } = require("stream");

function record(messages, request) {
  const raw = request.rawHeaders;
  const message = { start: [request.method, request.url], fields: [], body: "", complete: false };
  for (let i = 0; i < raw.length; i += 2) {
    message.fields.push([raw[i], raw[i + 1]]);
  }
  messages.push(message);
  return message;
}

function onRequest(messages, request) {
  const message = record(messages, request);
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("error", () => {});
  request.on("end", () => {
    message.complete = request.complete;
    message.body = Buffer.concat(pieces).toString("hex");
  });
}

function read(hex) {
  return new Promise((resolve) => {
    const messages = [];
    const server = http.createServer({ maxHeaderSize: 65536 });
    const socket = new Duplex({
      read() {},
      write(chunk, encoding, done) { done(); },
    });
    server.on("request", (request) => onRequest(messages, request));
    server.on("checkContinue", (request) => onRequest(messages, request));
    server.on("checkExpectation", (request) => onRequest(messages, request));
    server.on("connect", (request) => {
      record(messages, request).complete = true;
      socket.destroy();
    });
    server.on("clientError", () => socket.destroy());
    socket.on("close", () => setImmediate(() => resolve(messages)));
    socket.on("error", () => {});
    server.emit("connection", socket);
    socket.push(Buffer.from(hex, "hex"));
    socket.push(null);
  });
}

async function main() {
  const pieces = [];
  for await (const piece of process.stdin) {
    pieces.push(piece);
  }
  const results = [];
  for (const hex of JSON.parse(Buffer.concat(pieces).toString())) {
    results.push(await read(hex));
  }
  process.stdout.write(JSON.stringify(results));
}

main();

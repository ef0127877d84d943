"""HTTP servers on loopback that answer, or fail in each of the ways a server can."""

import contextlib
import gzip
import json
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Server:
    """A running server, and the requests that it got."""

    url: str
    requests: list = field(default_factory=list)
    headers: list = field(default_factory=list)
    connections: set = field(default_factory=set)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def host_and_port(self):
        return self.url.split("/")[2]


@contextlib.contextmanager
def serving(respond, *, certificate=None):
    """Run a server; `respond(handler, request)` answers, such as one of the functions below."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(json.loads(content))

        def do_PATCH(self):
            self.do_POST()

        def do_GET(self):
            self.answer(dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)))

        def answer(self, request):
            server.requests.append(request)
            server.headers.append(self.headers)
            server.connections.add(self.client_address)
            self.live = server
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                respond(self, request)

        def log_message(self, *_):
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_):
            pass

    listener = Quiet(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
        scheme = "https"
    server = Server(f"{scheme}://127.0.0.1:{listener.server_address[1]}/search")
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        listener.shutdown()
        thread.join()
        listener.server_close()


def saying(content, status=200, **headers):
    """Always give the same answer: bytes as they are, anything else as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def respond(handler, request):
        send(handler, body, status, headers)

    return respond


def send(handler, body, status=200, headers=None):
    handler.send_response(status)
    for name, value in (headers or {}).items():
        for text in value if isinstance(value, list) else [value]:
            handler.send_header(name.replace("_", "-"), text)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def echo(handler, request):
    """Return as many items as were asked for, named after the query."""
    results = [{"id": f"{request['query']}-{n}"} for n in range(int(request.get("top_k", 1)))]
    send(handler, json.dumps({"results": results}).encode())


def failing_first(times, failure, then=echo):
    """Fail the first `times` requests of each query."""
    counts = {}
    lock = threading.Lock()

    def respond(handler, request):
        with lock:
            seen = counts[request["query"]] = counts.get(request["query"], 0) + 1
        (failure if seen <= times else then)(handler, request)

    return respond


def slow(seconds, then=echo):
    """Wait before answering."""

    def respond(handler, request):
        handler.live.stopping.wait(seconds)
        then(handler, request)

    return respond


def hanging(handler, request):
    """Send nothing as long as the server is up."""
    handler.live.stopping.wait(60)
    handler.close_connection = True


def silent(handler, request):
    """Close the connection instead of answering."""
    handler.close_connection = True


def resetting(handler, request):
    """Reset the connection, as a crash does."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def cutting(handler, request):
    """Announce more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"results": [')
    handler.close_connection = True


def leaving(handler, request):
    """Answer, announce to keep the connection open, and close it anyway."""
    echo(handler, request)
    handler.close_connection = True


def zipped(handler, request):
    """Compress the answer."""
    send(handler, gzip.compress(b'{"results": ["z"]}'), 200, {"Content-Encoding": "gzip"})


def bomb(handler, request):
    """Send a small body that decompresses to 2 MB."""
    send(handler, gzip.compress(bytes(2 * 2**20), 1), 200, {"Content-Encoding": "gzip"})


def huge(handler, request):
    """Send 2.5 MB in chunks, without announcing how much it will be."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    piece = b" " * 2**16
    for _ in range(40):
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    handler.close_connection = True


def not_http(handler, request):
    """Answer in another protocol than HTTP."""
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    handler.close_connection = True

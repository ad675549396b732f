"""serve.py ADDRESS PROFILE LOG: an HTTP server with an answer for each thing that can happen. ADDRESS is a socket's
path, or a port (0: any); prints "ready PORT"."""
import http.server
import socketserver
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "client"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def do_GET(self):
        with open(sys.argv[3], "a", encoding="utf-8") as log:
            print(self.path, self.headers.get("Authorization"), self.headers.get("Host"), file=log)
        path = self.path.split("?")[0]
        if path in ("/debug/pprof/heap", "/elsewhere"):
            self.answer(200, open(sys.argv[2], "rb").read())
        elif path == "/inactive":
            self.answer(403, b"nothing is being sampled: activate it\nmore\n")
        elif path == "/escape":
            self.answer(500, b"red \x1b[31m text\n")
        elif path == "/page":
            self.answer(503, b"<html>sorry</html>")
        elif path == "/moved":
            self.answer(302, b"", [("Location", "/debug/pprof/heap")])
        elif path == "/cut":
            self.answer(200, b"heap_v2/1\n", [("Content-Length", "100000")])
        elif path == "/huge":
            self.answer(200, b"x" * 1000, [("Content-Length", "9000000000")])
        elif path == "/text":
            self.answer(200, b"this is no profile\n")
        elif path == "/slow":
            time.sleep(60)
        else:
            self.answer(404, b"")


class Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


if sys.argv[1].isdigit():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print("ready", server.server_address[1], flush=True)
else:
    server = Unix(sys.argv[1], Handler)
    print("ready 0", flush=True)
server.serve_forever()

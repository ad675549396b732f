"""
symbolz.py PROFILE PORT_FILE ASKED_FILE: serves PROFILE at /debug/pprof/heap and answers /debug/pprof/symbol with remote_ADDRESS;
the addresses that were asked for are written to ASKED_FILE. On a free port of the loopback, until it is killed.
"""
import http.server
import os
import sys

profile, port_file, asked_file = sys.argv[1:4]


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/debug/pprof/heap"):
            self.answer(open(profile, "rb").read())
        else:
            self.answer(b"num_symbols: 1\n")

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode().split("+")
        with open(asked_file, "a") as f:
            f.writelines(address + "\n" for address in asked)
        self.answer("".join(f"{address}\tremote_{address}\n" for address in asked).encode())


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()

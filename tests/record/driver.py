"""api_driver as an object: a store that is filled as a test likes, and its query API over HTTP."""
import http.client
import json
import os
import subprocess
import urllib.parse


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]


class Driver:
    def __init__(self, program, place, **settings):
        self.folder = place
        words = [program, os.path.join(place, "store")] + ["%s=%s" % item for item in settings.items()]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.host = self.url[len("http://"):]

    def command(self, *words):
        self.process.stdin.write("\t".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the driver ended")
            if line.startswith("ok"):
                return lines if words[0] == "metrics" else line[3:].strip()
            if line.startswith("error"):
                raise RuntimeError(line.strip())
            lines.append(line.strip())

    def series(self, labels, process, started_ms=0, build_id=""):
        text = ",".join("%s=%s" % item for item in sorted(labels.items()))
        return int(self.command("series", text, process, started_ms, build_id))

    def profile(self, series, time_ms, data):
        path = os.path.join(self.folder, "profile")
        with open(path, "wb") as f:
            f.write(data)
        self.command("profile", series, time_ms, path)

    def request(self, method, path, params=(), body=None, timeout=30):
        connection = http.client.HTTPConnection(self.host, timeout=timeout)
        query = urllib.parse.urlencode(list(params.items()) if isinstance(params, dict) else params, doseq=True)
        connection.request(method, "/api/v1/" + path + ("?" + query if query else ""), body=body)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, path, **params):
        return self.request("GET", path, {("from" if k == "from_" else k): v for k, v in params.items()})

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(20)

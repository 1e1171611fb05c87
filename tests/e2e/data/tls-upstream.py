"""An https service: tls-upstream.py CERTIFICATE KEY ADDRESS PORT. It tells what it was asked, headers and all, as JSON;
/stream says it in pieces, /chunked/N in chunks of N bytes, /close up to the end of the connection, /plain/N answers N
bytes, /silent never."""
import http.server
import json
import ssl
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            text = b""
            while size := int(self.rfile.readline(), 16):
                text += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return text
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self):
        if self.path.endswith("/silent"):
            time.sleep(1000)
        body = self.body()
        text = json.dumps({"method": self.command, "path": self.path, "body": body.decode(),
                           "headers": list(self.headers.items())}).encode()
        if "/plain/" in self.path:
            text = b"x" * int(self.path.rpartition("/")[2])
        self.send_response(200)
        self.send_header("X-Echo", self.headers.get("x-api-key") or self.headers.get("Authorization") or "")
        if "/chunked/" in self.path:
            return self.chunks(text, int(self.path.rpartition("/")[2]))
        if self.path.endswith("/close"):
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        for at in range(0, len(text), 7 if self.path.endswith("/stream") else len(text) or 1):
            self.wfile.write(text[at:at + (7 if self.path.endswith("/stream") else len(text))])
            self.wfile.flush()

    def chunks(self, text, size):
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(text), size):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text[at:at + size]), text[at:at + size]))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self):
        peer, address = super().get_request()
        return context.wrap_socket(peer, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request, address):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server = Server((sys.argv[3], int(sys.argv[4])), Handler)
print("ready", flush=True)
server.serve_forever()

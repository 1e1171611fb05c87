"""A model that says what a test wrote down, on 127.0.0.1, in the words of four APIs: Anthropic's messages, OpenAI's
responses and chat completions, and Gemini's generateContent. Which step comes next is counted in the conversation that
the agent sends: one for each call of a tool in it. Requests without tools (titles, summaries, guesses) get a word and
no step."""
import http.server
import json
import threading


class Call:
    """A step: the model calls a tool. `tool` may be a list of names: the first that the agent offers."""
    def __init__(self, tool, **input):
        self.tool, self.input = tool, input

    def name(self, offered):
        wanted = [self.tool] if isinstance(self.tool, str) else self.tool
        found = [name for name in wanted if name in offered]
        assert found, f"the agent offers none of {wanted}: {sorted(offered)}"
        return found[0]


def blocks_of(messages, kind):
    return [block for message in messages if isinstance(message.get("content"), list) for block in message["content"]
            if isinstance(block, dict) and block.get("type") == kind]


class Model:
    def __init__(self, steps):
        self.steps, self.requests, self.errors = steps, [], []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def do_GET(self):
                self.reply(json.dumps({"data": [], "models": []}), "application/json")

            def do_HEAD(self):
                self.reply("", "text/plain")

            def do_POST(self):
                try:
                    body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
                except ValueError:
                    body = {}
                try:
                    self.reply(*model.answer(self.path.partition("?")[0], body))
                except Exception as error:  # told to the test, which fails
                    model.errors.append(repr(error))
                    self.reply(json.dumps({"error": {"type": "test", "message": repr(error)}}), "application/json", 400)

            def reply(self, text, kind, status=200):
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()

    def step(self, taken, offered):
        """The next: a name, the input, or a text."""
        if not offered or taken >= len(self.steps):
            return None, "done"
        step = self.steps[taken]
        # A step that has to do something first; once, since agents repeat what failed.
        if callable(step):
            step = self.steps[taken] = step()
        return (step.name(offered), step.input) if isinstance(step, Call) else (None, step)

    def answer(self, path, body):
        self.requests.append((path, body))
        if path.endswith("/count_tokens"):
            return json.dumps({"input_tokens": 10}), "application/json"
        if path.endswith("/messages"):
            return self.anthropic(body)
        if path.endswith("/responses"):
            return self.responses(body)
        if path.endswith("/chat/completions"):
            return self.chat(body)
        if ":streamGenerateContent" in path or ":generateContent" in path:
            return self.gemini(body, "stream" in path)
        if ":countTokens" in path:
            return json.dumps({"totalTokens": 10}), "application/json"
        return json.dumps({}), "application/json"

    @staticmethod
    def events(events, named=True):
        lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        return "".join(lines), "text/event-stream"

    def anthropic(self, body):
        taken = len(blocks_of(body.get("messages", []), "tool_use"))
        name, what = self.step(taken, {tool.get("name") for tool in body.get("tools") or []})
        message = {"id": f"msg_{taken}", "type": "message", "role": "assistant", "model": body.get("model"),
                   "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10}}
        block = {"type": "tool_use", "id": f"toolu_{taken}", "name": name,
                 "input": what} if name else {"type": "text", "text": what}
        reason = "tool_use" if name else "end_turn"
        if not body.get("stream"):
            return json.dumps({**message, "content": [block], "stop_reason": reason}), "application/json"
        delta = {"type": "input_json_delta",
                 "partial_json": json.dumps(what)} if name else {"type": "text_delta", "text": what}
        empty = {**block, "input": {}} if name else {"type": "text", "text": ""}
        return self.events([
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": 10}},
            {"type": "message_stop"}])

    def responses(self, body):
        items = body.get("input") if isinstance(body.get("input"), list) else []
        taken = sum(item.get("type") in ("function_call", "custom_tool_call") for item in items)
        tools = {tool.get("name") or tool.get("type"): tool for tool in body.get("tools") or []}
        # Those of MCP servers come in groups.
        tools |= {f"{group['name']}__{tool['name']}": {**tool, "namespace": group["name"]}
                  for group in body.get("tools") or []
                  for tool in group.get("tools") or []}
        name, what = self.step(taken, set(tools))
        if name and tools[name].get("type") == "custom":
            item = {"type": "custom_tool_call", "id": f"ctc_{taken}", "call_id": f"call_{taken}", "name": name,
                    "input": what["input"]}
        elif name and "namespace" in tools[name]:
            item = {"type": "function_call", "id": f"fc_{taken}", "call_id": f"call_{taken}",
                    "name": tools[name]["name"], "namespace": tools[name]["namespace"], "arguments": json.dumps(what)}
        elif name:
            item = {"type": "function_call", "id": f"fc_{taken}", "call_id": f"call_{taken}", "name": name,
                    "arguments": json.dumps(what)}
        else:
            item = {"type": "message", "id": f"msg_{taken}", "role": "assistant",
                    "content": [{"type": "output_text", "text": what}]}
        response = {"id": f"resp_{taken}", "object": "response", "status": "completed", "output": [item],
                    "usage": {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20,
                              "input_tokens_details": {"cached_tokens": 0},
                              "output_tokens_details": {"reasoning_tokens": 0}}}
        return self.events([{"type": "response.created", "response": {**response, "output": []}},
                            {"type": "response.output_item.done", "output_index": 0, "item": item},
                            {"type": "response.completed", "response": response}])

    def chat(self, body):
        taken = sum(len(message.get("tool_calls") or []) for message in body.get("messages", []))
        name, what = self.step(taken, {tool["function"]["name"] for tool in body.get("tools") or []})
        call = [{"index": 0, "id": f"call_{taken}", "type": "function",
                 "function": {"name": name, "arguments": json.dumps(what)}}]
        delta = {"role": "assistant", "content": None,
                 "tool_calls": call} if name else {"role": "assistant", "content": what}
        chunk = {"id": f"chat_{taken}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
        end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if name else "stop"}],
               "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}}
        if not body.get("stream"):
            return json.dumps({**end, "object": "chat.completion",
                               "choices": [{"index": 0, "message": delta, "finish_reason": "stop"}]}), \
                "application/json"
        text, kind = self.events([{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, end],
                                 named=False)
        return text + "data: [DONE]\n\n", kind

    def gemini(self, body, stream):
        taken = sum("functionCall" in part for content in body.get("contents", []) for part in content.get("parts")
                    or [])
        offered = {tool["name"] for group in body.get("tools") or [] for tool in group.get("functionDeclarations")
                   or []}
        name, what = self.step(taken, offered)
        part = {"functionCall": {"name": name, "args": what}} if name else {"text": what}
        if not offered:  # Gemini CLI asks small questions whose answers are JSON
            part = {"text": json.dumps({"complexity_score": 1, "complexity_reasoning": "", "model_choice": "flash",
                                        "reasoning": "", "next_speaker": "user"})}
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}}
        return (f"data: {json.dumps(answer)}\n\n",
                "text/event-stream") if stream else (json.dumps(answer), "application/json")

    def told(self):
        """Everything the agent sent, as one text: what the model gets to see."""
        return "\n".join(json.dumps(body, ensure_ascii=False) for _, body in self.requests)

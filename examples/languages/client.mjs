// The same as ../agent.c, over the socket of `cordon serve`: Node's standard library alone.
//
//     node client.mjs ~/.local/share/cordon/daemon.sock
import net from "node:net";
import readline from "node:readline";

const socket = net.connect(process.argv[2]);
const waiting = new Map(), listeners = new Map(), early = [];
let count = 0;
readline.createInterface({ input: socket }).on("line", (line) => {
  const said = JSON.parse(line);
  if (said.method === "process.event") {
    const listener = listeners.get(said.params.process);
    if (listener) listener(said.params.event);
    else early.push(said.params);
  } else if (waiting.has(said.id)) {
    const { resolve, reject } = waiting.get(said.id);
    waiting.delete(said.id);
    if (said.error) reject(new Error(said.error.message));
    else resolve(said.result);
  }
});

function call(method, params) {
  return new Promise((resolve, reject) => {
    waiting.set(++count, { resolve, reject });
    socket.write(JSON.stringify({ jsonrpc: "2.0", id: count, method, params }) + "\n");
  });
}

async function follow(line, settings) {
  const { id } = await call("process.start", {
    argv: ["sh", "-c", line], environment: [`PATH=${process.env.PATH}`], settings: { session: "client-node", ask: true, ...settings },
  });
  await new Promise((resolve) => {
    const listener = (event) => {
      if (event.event === "asks") call("approvals.answer", { card: event.card, hash: event.hash, answer: "once" });
      else if (event.data === "sleeping\n") call("process.cancel", { id, grace_ms: 2000 });
      else if (event.event === "output") process.stdout.write(event.data);
      else if (event.event === "ended") {
        if (event.result.ended_by !== "exit") console.log(event.result.ended_by);
        resolve();
      }
    };
    listeners.set(id, listener);
    for (const params of early.splice(0)) if (params.process === id) listener(params.event);
  });
}

await follow("echo ran", { read: "/var/tmp" });
await follow("echo sleeping; exec sleep 1000", {});
socket.end();

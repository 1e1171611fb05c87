"""Real agents, each with a home of its own and a scripted model (model.py), set up by `cordon setup`.

The packages lie in CORDON_AGENTS, which tests/agents/install fills."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
E2E = HERE.parent / "e2e"
sys.path[:0] = [str(HERE), str(E2E)]
spec = importlib.util.spec_from_file_location("e2e_conftest", E2E / "conftest.py")
e2e = importlib.util.module_from_spec(spec)
spec.loader.exec_module(e2e)
PROGRAM = pathlib.Path(e2e.PROGRAM).resolve()
PACKAGES = pathlib.Path(os.environ.get("CORDON_AGENTS") or e2e.ROOT / "build/agents")
NODE = PACKAGES / "node_modules/node/bin"

from model import Call, Model  # noqa: E402


class Agent:
    """One agent in a home of its own. Its cordon is a copy, so that it can be taken away."""
    bins = PACKAGES / "node_modules/.bin"
    is_alone = False  # without cordon
    setup_words = ()

    def __init__(self, tmp_path):
        self.home, self.project, self.bin = tmp_path / "home", tmp_path / "home/project", tmp_path / "bin"
        for directory in (self.project, self.bin):
            directory.mkdir(parents=True)
        shutil.copy2(PROGRAM, self.bin / "cordon")
        (self.bin / "cordon-shell").symlink_to("cordon")
        (self.project / "README").write_text("a project\n")
        # Few variables: what the person at this machine has set is another matter.
        self.env = {"HOME": str(self.home), "PATH": f"{NODE}:/usr/local/bin:/usr/bin:/bin", "PWD": str(self.project),
                    "LC_ALL": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "XDG_DATA_HOME": str(tmp_path / "data")}
        self.cordon("setup", self.name, *self.setup_words)

    def cordon(self, *words, check=True, **options):
        return subprocess.run([self.bin / "cordon", *words], env=self.env, cwd=self.project, check=check,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, start_new_session=True,
                              **options)

    def write(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def settings(self, name, **more):
        """Adds to settings that cordon setup may have written."""
        path = self.home / name
        old = json.loads(path.read_text()) if path.exists() else {}
        self.write(name, {**old, **more})

    def run(self, *steps, timeout=120):
        """What the agent does when its model takes these steps. The model's view is .told."""
        with Model(list(steps)) as model:
            argv = self.prepare(model.url)
            done = subprocess.run(argv, cwd=self.project, env=self.env, capture_output=True, text=True, timeout=timeout,
                                  stdin=subprocess.DEVNULL, start_new_session=True)
            done.told, done.model = model.told(), model
            assert not model.errors, model.errors
            return done

    def answers(self, done, command):
        """What the model was told of this command: the text after its last call."""
        bodies = [json.dumps(body, ensure_ascii=False) for _, body in done.model.requests]
        bodies = [body[body.rindex(command) + len(command):] for body in bodies if command in body]
        return [body for body in bodies if '"tool_result"' in body or '"function_call_output"' in body
                or '"functionResponse"' in body
                or '"role": "tool"' in body]

    def shell(self, command):
        return Call(self.tool, **{self.argument: command, **self.extra})

    def sessions(self):
        return [each["id"] for each in json.loads(self.cordon("session", "list", "--json").stdout)["sessions"]]


class Claude(Agent):
    title = "Claude Code"
    refused = "Exit code (1|12[5-7])"
    name, package, tool, argument, extra = "claude", "@anthropic-ai/claude-code", "Bash", "command", {"description": "a command"}

    def prepare(self, url):
        self.env.update(ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="test", IS_SANDBOX="1", DISABLE_AUTOUPDATER="1",
                        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
        return [self.bins / "claude", "-p", "--dangerously-skip-permissions", "do it"]

    def edit(self, path, text):
        return Call("Write", file_path=str(path), content=text)

    def change(self, path, old, new):
        return [Call("Read", file_path=str(path)), Call("Edit", file_path=str(path), old_string=old, new_string=new)]


class Codex(Agent):
    title = "Codex"
    refused = "No usable execution environment is available"
    name, package, tool, argument, extra = "codex", "@openai/codex", "exec_command", "cmd", {}

    def prepare(self, url):
        self.write(".codex/config.toml",
                   'model = "test"\nmodel_provider = "test"\n[model_providers.test]\nname = "test"\n'
                                         f'base_url = "{url}/v1"\nwire_api = "responses"\n')
        return [self.bins / "codex", "exec", "--skip-git-repo-check",
                *(["--dangerously-bypass-approvals-and-sandbox"] if self.is_alone
                  else ["--sandbox", "workspace-write"]), "do it"]

    def edit(self, path, text):
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return Call("exec_command",
                    cmd=f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path.name}\n{lines}*** End Patch\nEOF\n")

    def change(self, path, old, new):
        return [Call("exec_command",
                     cmd=f"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: {path.name}\n@@\n-{old}\n+{new}\n*** End Patch\nEOF\n")]


class Gemini(Agent):
    title = "Gemini CLI"
    refused = "Tool execution blocked|Exit Code: 125"
    name, package, tool, argument, extra = "gemini", "@google/gemini-cli", "run_shell_command", "command", {"description": "a command"}

    def prepare(self, url):
        self.settings(".gemini/settings.json", security={"auth": {"selectedType": "gemini-api-key"}})
        self.write(".gemini/trustedFolders.json", {str(self.project): "TRUST_FOLDER"})
        self.env.update(GOOGLE_GEMINI_BASE_URL=url, GEMINI_API_KEY="test")
        return [self.bins / "gemini", "--yolo", "-p", "do it"]

    def edit(self, path, text):
        return Call("write_file", file_path=str(path), content=text)

    def change(self, path, old, new):
        return [Call("read_file", file_path=str(path)),
                Call("replace", file_path=str(path), old_string=old, new_string=new, instruction="change it")]


class Opencode(Agent):
    title = "opencode"
    # Of a shell that is killed it hears nothing, and waits.
    refused = "is missing; the command was not run|shell tool terminated command after exceeding timeout|cordon: the session's directory cannot be opened"
    name, package, tool, argument, extra = "opencode", "opencode-ai", "bash", "command", {"description": "a command", "timeout": 20000}

    def prepare(self, url):
        self.settings(".config/opencode/opencode.json", autoupdate=False, model="test/m",
                      permission={"external_directory": "allow", "bash": "allow", "edit": "allow"},
                      provider={"test": {"npm": "@ai-sdk/openai-compatible", "name": "test",
                                         "models": {"m": {"name": "m"}},
                                         "options": {"baseURL": f"{url}/v1", "apiKey": "test"}}})
        self.env.update(OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1",
                        OPENCODE_DISABLE_LSP_DOWNLOAD="1")
        return [self.bins / "opencode", "run", "do it"]

    def edit(self, path, text):
        return Call("write", filePath=str(path), content=text)

    def change(self, path, old, new):
        return [Call("read", filePath=str(path)), Call("edit", filePath=str(path), oldString=old, newString=new)]


@pytest.fixture
def agent(request, tmp_path):
    return {each.name: each for each in (Claude, Codex, Gemini, Opencode)}[request.module.AGENT](tmp_path)

"""Which tests concern a file: the inner loop of tests/run FILE... and tests/run --changed."""
import pathlib
import subprocess

# The end-to-end tests of a room, those that tell most within a minute. The longest prefix counts.
ROOMS = {
    "src/": ["test_cli.py", "test_results.py", "test_bad_input.py"],
    "src/api/": ["test_session.py", "test_library.py"],
    "src/approval/": ["test_approvals.py", "test_permission.py"],
    "src/audit/": ["test_audit.py", "test_full_disk.py"],
    "src/config/": ["test_config.py", "test_manifest.py"],
    "src/door/cli/": ["test_cli.py", "test_cli_streams.py", "test_cli_documents.py"],
    "src/door/daemon/": ["test_serve.py"],
    "src/door/mcp/": ["test_mcp.py", "test_mcp_results.py", "test_mcp_tasks.py"],
    "src/door/rpc/": ["test_serve.py", "test_protocol.py", "test_mcp.py"],
    "src/door/wire/": ["test_serve.py", "test_serve_client.py"],
    "src/driver/": ["test_lifetime.py", "test_results.py", "test_session_walls.py"],
    "src/egress/": ["test_egress.py", "test_network.py"],
    "src/files/": ["test_files.py", "test_archives.py"],
    "src/host/": ["test_base_view.py", "test_toolchains.py"],
    "src/paths/": ["test_names.py", "test_planted.py", "test_judged.py", "test_own_files.py"],
    "src/limits": ["test_limits.py", "test_disk.py"],
    "src/net/": ["test_url.py", "test_egress.py"],
    "src/policy/": ["test_permission.py", "test_config.py"],
    "src/profile/": ["test_results.py", "test_ioctls.py"],
    "src/proxy/": ["test_egress.py", "test_network.py"],
    "src/run/": ["test_results.py", "test_remarks.py"],
    "src/sandbox/": ["test_session_living.py", "test_session_walls.py"],
    "src/secrets/": ["test_secrets.py", "test_credentials.py"],
    "src/session/": ["test_session.py", "test_jobs.py"],
}
# What every change may break, and what a look at the text alone tells.
ALWAYS = ["static/layers", "static/exports"]


def changed(root):
    """Files that differ from the last commit, and such as git does not know yet."""
    text = subprocess.run(["git", "status", "--porcelain", "-uall", "--no-renames"], cwd=root, check=True,
                          capture_output=True, text=True).stdout
    return [line[3:] for line in text.splitlines() if line[0] != "D" and line[1] != "D"]


def room_tests(file):
    best = max((prefix for prefix in ROOMS if file.startswith(prefix)), key=len, default=None)
    return [f"tests/e2e/{name}" for name in ROOMS.get(best, [])]


def unit_tests(root, build, files):
    """The C tests that link an object of one of these files, or are one of them."""
    objects = {f"{file.replace('/', '_')}.o" for file in files if file.endswith(".c")}
    headers = {pathlib.PurePath(file).stem for file in files if file.endswith(".h")}
    found = []
    for program in sorted((root / build).glob("tests/unit/test-*")) + sorted((root / build).glob("fuzz/fuzz-*")):
        if program.is_dir() or program.suffix:
            continue
        inputs = subprocess.run(["ninja", "-C", root / build, "-t", "inputs", program.relative_to(root / build)],
                                capture_output=True, text=True).stdout.splitlines()
        leaves = {pathlib.PurePath(line).name for line in inputs}
        own = {pathlib.PurePath(file).name for file in files}
        if leaves & (objects | own) or {leaf.removesuffix(".c.o").rpartition("_")[2] for leaf in leaves} & headers:
            found.append(program.name.partition("-")[2] if program.name.startswith("test-") else program.name)
    return found


def choose(root, build, files):
    """(names of C tests, files for pytest, scripts) that concern these files."""
    files = [str(pathlib.Path(file).resolve().relative_to(root)) if pathlib.Path(file).exists() else file
             for file in files]
    python = [file for file in files if pathlib.PurePath(file).name.startswith("test_") and file.endswith(".py")]
    sources = [file for file in files
               if file.startswith(("src/", "include/", "tests/unit/", "fuzz/", "tests/support/"))]
    for file in sources:
        python += room_tests(file)
    return unit_tests(root, build, sources) if sources else [], list(dict.fromkeys(python)), ALWAYS if sources else []

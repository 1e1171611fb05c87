"""Programs that take the whole terminal: an editor, a pager, a multiplexer."""
import pytest

from lab import missing


@pytest.mark.parametrize("words, keys", [
    pytest.param(["vim", "-u", "NONE", "file"], ["Gothe last line\x1b", ":wq\r"], id="vim", marks=missing("vim")),
    pytest.param(["less", "file"], ["G", "q"], id="less", marks=missing("less")),
    pytest.param(["tmux", "-f", "/dev/null", "new-session", "bash --norc"],
                 ["cat file\r", "echo the last line >>file; exit\r"], id="tmux", marks=missing("tmux")),
])
def test_a_session_in_a_terminal(terminal, work, words, keys):
    work.write("file", "the first line\n" + "another\n" * 5)
    session = terminal("run", "--tty", "--env", "TERM=xterm", "--env", "LC_ALL=C.UTF-8", "--", *words)
    session.expect("the first line" if words[0] != "tmux" else r"\$ ")
    for text in keys:
        session.type(text)
    assert session.end() == 0
    assert words[0] == "less" or (work.workspace / "file").read_text().endswith("the last line\n")
